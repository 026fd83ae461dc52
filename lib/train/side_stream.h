#pragma once
// A stream of a device beside the current one, for transfers while the current one computes.

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/base.h"
#include "nn/base/torch.h"

namespace train {

/// Returns the current stream of a device that has streams.
inline c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// Work that was queued on a stream. On the CPU it is done already.
class Queued {
 public:
  Queued() = default;
  explicit Queued(const c10::Stream& stream) : done_(c10::Event(stream.device_type())) {
    done_->record(stream);
  }
  /// Makes later work on the current stream of the device wait for this work. The host does not.
  void follow() const {
    if (done_) done_->block(current_stream(done_->device()));
  }

 private:
  std::optional<c10::Event> done_;
};

/// Not thread safe, but its calls may come from several threads in turn.
class SideStream {
 public:
  /// On the CPU there is no stream: work is done at once.
  explicit SideStream(torch::Device device) {
    if (!device.is_cpu())
      stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true);
  }
  bool exists() const { return stream_.has_value(); }

  /// Runs `work`, with this stream as the current one, behind all that is on the current stream. A
  /// tensor of the current stream that `work` reads must live until the current stream follows the
  /// result, since its memory is given out again without regard to this stream. Tensors that `work`
  /// makes may be freed after the current stream has read them.
  template <class Work> Queued run(const Work& work) const {
    if (!stream_) {
      work();
      return {};
    }
    const Queued before(current_stream(stream_->device()));
    const c10::StreamGuard on(*stream_);
    before.follow();
    work();
    return Queued(*stream_);
  }

 private:
  std::optional<c10::Stream> stream_;
};

}  // namespace train
