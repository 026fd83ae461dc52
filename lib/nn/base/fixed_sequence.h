#pragma once
// A sequence of operators that is the same each time: recorded once, then started as one (a CUDA
// graph).

#include <functional>
#include <memory>
#include <string>

#include "core/options.h"
#include "nn/base/cuda.h"
#include "nn/base/torch.h"
#include "nn/base/upload.h"

namespace nn {

/// Whether it is done, where it can be.
struct GraphOptions {
  std::string cuda_graph = "on";
  void fields(core::FieldList& f);
  bool on() const { return cuda_graph == "on"; }
};

/// On a device that can record, work runs as it comes kWarmUp times, is recorded, and is then
/// started as a whole, without the host's code. So it must be the same operators on the same memory
/// each time, none of which the host waits for, and what the host gives it by upload() must not
/// change. What it draws on the device is drawn anew, as the device's generator stands then. What
/// it makes lies where it did when it was recorded, and the next run overwrites it.
///
/// Elsewhere, and from when recording fails, it runs as it comes each time; a failure is told by
/// say(), with its reason. Not thread safe.
class FixedSequence {
 public:
  static constexpr int kWarmUp = 2;

  /// `record`: false: never.
  explicit FixedSequence(torch::Device device, bool record = true)
      : device_(device), record_(record) {}

  void run(const std::function<void()>& work);
  /// What comes is another sequence, or has its memory elsewhere.
  void reset();
  bool recorded() const { return recording_ != nullptr; }

 private:
  void record(const GraphCalls& calls, const std::function<void()>& work);

  torch::Device device_;
  bool record_;
  int runs_ = 0;
  Uploads uploads_;
  std::shared_ptr<void> recording_;  // the device's
};

}  // namespace nn
