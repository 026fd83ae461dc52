#include "nn/base/fixed_sequence.h"

#include <exception>

#include "nn/base/runtime.h"

namespace nn {

void GraphOptions::fields(core::FieldList& f) {
  const auto group = f.group("Computing");
  f("cuda-graph", cuda_graph, "GPU: record repeated kernel launches as CUDA graphs");
}

void FixedSequence::run(const std::function<void()>& work) {
  const GraphCalls* const calls = record_ ? graph_calls(device_) : nullptr;
  if (calls == nullptr) return work();
  if (runs_ < kWarmUp) {
    ++runs_;
    const SameUploads same(uploads_, /*complete=*/false);
    return work();
  }
  if (!recorded()) record(*calls, work);
  if (!recorded()) return work();
  calls->replay(recording_.get());
}

// An error in the work itself shows when the work runs without a recording.
void FixedSequence::record(const GraphCalls& calls, const std::function<void()>& work) {
  try {
    const std::shared_ptr<void> recording(
        calls.begin(std::max<int>(0, device_.index())), calls.free);
    const SameUploads same(uploads_, /*complete=*/true);
    work();
    calls.end(recording.get());
    recording_ = recording;
  } catch (const std::exception& error) {
    record_ = false;
    uploads_.clear();
    const std::string why = error.what();
    say(fmt::format("--cuda-graph: recording failed; continues without graphs, slower: {}",
        why.substr(0, why.find('\n'))));
  }
}

void FixedSequence::reset() {
  recording_.reset();
  uploads_.clear();
  runs_ = 0;
}

}  // namespace nn
