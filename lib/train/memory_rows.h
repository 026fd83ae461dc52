#pragma once
// Trains few rows of a model's memory tables and nothing else: sparse memory fine-tuning (Lin et
// al. 2025, "Continual Learning via Sparse Memory Finetuning", arXiv 2510.15103).
//
// A micro-batch changes those rows of a table that its tokens, not its padding, read most beside a
// background text, by TF-IDF:
//
//   score_i = n_i log((B + 1) / (b_i + 1))
//
// n_i: reads of row i by the micro-batch; b_i: how many of B micro-batches of the background read
// row i. The rows with the highest scores above 0 keep their gradients. Of equal scores, the lower
// row comes first.

#include "nn/arch/model.h"
#include "train/batches.h"
#include "train/optimiser.h"

namespace train {

class MemoryRows : public TrainedPart {
 public:
  /// Freezes all other weights of the model. `most`: rows of each table that a micro-batch changes.
  /// Throws Error{usage} that names the flag if the model has no memory table.
  MemoryRows(std::shared_ptr<nn::Model> model, std::int64_t most);

  /// Reads all micro-batches of the first epoch, on the model's device. Returns the rows that they
  /// read, in all tables.
  std::int64_t read_background(const shard::Dataset& data, Order& order, const TokenRules& rules);
  /// Rows in all tables.
  std::int64_t rows() const;

  void to(torch::Device device) override;
  NamedWeights weights() const override { return tables_; }
  bool in_model() const override { return true; }
  void forward(const std::function<void()>& pass) override;
  void take_gradients() override;

 private:
  std::shared_ptr<nn::Model> model_;
  std::int64_t most_, micro_batches_ = 0;  // B
  NamedWeights tables_;
  std::vector<torch::Tensor> values_;              // the tables
  std::vector<torch::Tensor> reads_, background_;  // (N) int64: n and b
};

}  // namespace train
