#pragma once
// Records a repeated sequence of operators once and replays it (a CUDA graph).

#include "core/options.h"
#include "nn/base/cuda.h"
#include "nn/base/upload.h"

namespace nn {

/// Option that enables recording on devices that support it.
struct GraphOptions {
  bool cuda_graph = true;
  void fields(core::FieldList& f);
  bool on() const { return cuda_graph; }
};

/// Runs a sequence of operators. On a device that can record, the first kWarmUp runs execute
/// `work`, the next run records it, and later runs replay the recording without the host's code.
/// Each run must launch the same operators on the same memory and must not wait for the device;
/// data that upload() passes to the device must not change. Random numbers come from the device's
/// generator at replay. Outputs remain at the addresses of the recording, and the next run
/// overwrites them.
///
/// On other devices, and after a failed recording, each run executes `work`. nn::say() reports a
/// failure with its reason. Not thread safe.
class FixedSequence {
 public:
  static constexpr int kWarmUp = 2;

  /// `record` false disables recording.
  explicit FixedSequence(torch::Device device, bool record = true)
      : device_(device), record_(record) {}

  void run(const std::function<void()>& work);
  /// Discards the recording: the next runs use other operators or other memory.
  void reset();
  bool recorded() const { return recording_ != nullptr; }

 private:
  void record(const GraphCalls& calls, const std::function<void()>& work);

  torch::Device device_;
  bool record_;
  int runs_ = 0;
  Uploads uploads_;
  std::shared_ptr<void> recording_;  // owned by the device
};

}  // namespace nn
