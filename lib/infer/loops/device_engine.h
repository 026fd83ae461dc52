#pragma once
// A transformer decoded on a device by its own modules: keys and values lie in rings, and what a token
// takes is the same operators on the same memory each time, which nobody waits for.

#include <memory>
#include <vector>

#include "infer/decode/decode_engine.h"
#include "nn/arch/decoder_stack.h"
#include "nn/base/fixed_sequence.h"
#include "nn/layers/kv_ring.h"

namespace infer {

/// Rings hold at least 64 tokens a row, and twice as many as before where more are needed.
class DeviceEngine : public Engine {
 public:
  /// A transformer, not an encoder-decoder, on a device.
  static bool fits(const nn::Model& model, torch::Device device);
  /// `record`: a token of each row is recorded and started as one (nn::FixedSequence) until rows or
  /// rings are others.
  DeviceEngine(nn::Model& model, torch::Device device, bool record = true);

  void open(std::int64_t rows) override;
  /// Throws Error{bad_data} where learned positions run out.
  nn::Hidden feed(const std::vector<Feed>& feeds) override;
  void select(const std::vector<std::int64_t>& rows) override;
  void forget(std::int64_t keep) override;
  bool takes_back() const override { return true; }
  void take_back(const std::vector<std::int64_t>& tokens) override;
  nn::Head& head() override { return *model_.head; }
  bool recorded() const { return token_.recorded(); }

 private:
  struct Row {
    std::int64_t begin = 0, end = 0;  // positions of the tokens held
    std::int64_t held() const { return end - begin; }
  };
  void make_room(std::int64_t steps);
  torch::Tensor numbers(const std::vector<Feed>& feeds, std::int64_t steps);
  nn::Hidden run(const torch::Tensor& numbers);
  nn::Hidden run_token(const torch::Tensor& numbers);

  nn::Model& model_;
  nn::DecoderStack& decoder_;
  torch::Device device_;
  std::vector<Row> rows_;
  nn::KvRing ring_;
  nn::FixedSequence token_;  // a token of each row: from now_ to next_
  torch::Tensor now_;
  nn::Hidden next_;
};

}  // namespace infer
