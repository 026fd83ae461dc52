#pragma once
// Rows of text that grow a few tokens at a time: what carries a model's State while decoding.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "infer/decode/decode_kernels.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"

namespace infer {

/// The tokens one row is fed in a call; none: the row stands still.
struct Feed {
  std::vector<std::int64_t> tokens;
  bool fresh = false;                     ///< the row's State starts afresh with these tokens
  std::vector<std::int64_t> source = {};  ///< of a row that starts: what an encoder reads
};

/// Not thread safe. Tensors are on the model's device.
class Engine {
 public:
  virtual ~Engine() = default;
  /// From here on so many fresh rows.
  virtual void open(std::int64_t rows) = 0;
  /// One Feed a row. f (N, d_model), g (N, d_key) of all tokens fed, row after row.
  virtual nn::Hidden feed(const std::vector<Feed>& feeds) = 0;
  /// Row i becomes what row rows[i] was; any number of rows, and a row may be taken twice.
  virtual void select(const std::vector<std::int64_t>& rows) = 0;
  /// Every row keeps at most its `keep` newest tokens. Only where the architecture forgets.
  virtual void forget(std::int64_t keep) = 0;
  /// Whether there are mark() and take_back().
  virtual bool takes_back() const { return false; }
  /// Of what the next feed() gives something may be taken back.
  virtual void mark() {}
  /// After mark() and one feed(): row i was not fed the last tokens[i] of what it was fed.
  virtual void take_back(const std::vector<std::int64_t>& /*tokens*/) {}
  virtual nn::Head& head() = 0;
};

/// The model's own modules, any architecture and device.
class ModuleEngine : public Engine {
 public:
  explicit ModuleEngine(nn::Model& model, torch::Device device) : model_(model), device_(device) {}
  void open(std::int64_t rows) override;
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  /// mark() copies the State, take_back() feeds what is kept once more.
  bool takes_back() const override { return true; }
  void mark() override;
  void take_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *model_.head; }

 private:
  nn::Model& model_;
  torch::Device device_;
  nn::State state_;
  bool unused_ = true;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> fed_;  // tokens a row since it was opened
  struct Marked {
    nn::State state;
    std::vector<std::int64_t> fed;
    std::vector<Feed> feeds;  // of the call after it
  };
  std::optional<Marked> marked_;
};

}  // namespace infer
