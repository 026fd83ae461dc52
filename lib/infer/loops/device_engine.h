#pragma once
// A model decoded on a device by its own modules: keys and values lie in rings, what else it
// carries in tensors that stay, and what a token takes is the same operators on the same memory
// each time, which nobody waits for.

#include <memory>
#include <optional>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "nn/base/fixed_sequence.h"
#include "nn/base/fixed_state.h"
#include "nn/layers/ring_decoder.h"

namespace infer {

/// Rings hold at least 64 tokens a row, and twice as many as before where more are needed.
class DeviceEngine : public Engine {
 public:
  /// A model that decodes in rings as it is set up, on a device.
  static bool fits(const nn::Model& model, torch::Device device);
  /// `record`: a token of each row is recorded and started as one (nn::FixedSequence) until rows,
  /// rings or sources are others.
  DeviceEngine(nn::Model& model, torch::Device device, bool record = true);

  void open(std::int64_t rows) override;
  /// Throws Error{bad_data} where learned positions run out.
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  bool takes_back() const override { return true; }
  /// Where every token changes what is carried, mark() copies that, and take_back() feeds what is
  /// kept once more.
  void mark() override;
  void take_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *model_.head; }
  bool recorded() const { return token_.recorded(); }

 private:
  struct Row {
    std::int64_t begin = 0, end = 0;  // positions of the tokens held
    std::int64_t held() const { return end - begin; }
  };
  struct Marked {
    bool unused;
    std::vector<Row> rows;
    nn::State kept;
    std::vector<Feed> feeds;  // of the call after it
  };
  void start_rows(const std::vector<Feed>& feeds);
  void make_room(std::int64_t steps);
  torch::Tensor numbers(const std::vector<Feed>& feeds, std::int64_t steps);
  nn::Hidden run(const torch::Tensor& numbers, bool full);
  nn::Hidden run_token(const torch::Tensor& numbers);
  void keep(const nn::State& made);

  nn::Model& model_;
  nn::RingDecoder& decoder_;
  torch::Device device_;
  std::vector<Row> rows_;
  bool unused_ = true;  // since it was opened
  nn::KvRing ring_;
  nn::FixedState kept_;
  bool moved_ = false;       // something of kept_, since token_ was begun
  nn::FixedSequence token_;  // a token of each row: from now_ to next_
  torch::Tensor now_;
  nn::Hidden next_;
  std::optional<Marked> marked_;
};

}  // namespace infer
