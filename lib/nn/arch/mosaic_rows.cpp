#include "nn/arch/mosaic_rows.h"

#include <algorithm>

#include "core/error.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

using torch::Tensor;

Tensor started_rows(const Batch& batch, State* state) {
  if (state == nullptr || !state->has("started")) return torch::zeros({batch.rows()}, torch::kBool);
  const auto started = state->tensors["started"].cpu();
  if (started.size(0) != batch.rows())
    core::fail(core::Code::bug, "a state of {} rows cannot continue with a batch of {} rows",
               started.size(0), batch.rows());
  return batch.fresh.defined() ? started & batch.fresh.logical_not() : started;
}

}  // namespace

MosaicRows::MosaicRows(const Batch& batch, State* state, bool may_open)
    : fresh_(batch.fresh), ids_(batch.inputs) {
  const auto real = batch.place.run >= 0;  // (B, T)
  const auto started = started_rows(batch, state);
  const bool dense = real.all().item<bool>();
  const auto steps = batch.steps();
  const auto device = batch.inputs.device();
  started_after_ = started | real.any(1);
  opening_ = may_open && dense && steps > 0 && !started.any().item<bool>();
  const auto lengths = real.sum(1);  // (B)
  if (opening_) {
    pairs_ = torch::ones({batch.rows(), steps - 1}, torch::kBool);
  } else {
    pairs_ = torch::arange(steps).unsqueeze(0) < lengths.unsqueeze(1);
    if (steps > 0) pairs_.select(1, 0).logical_and_(started);
  }
  if (dense) return;
  order_ = upload(torch::argsort(real.logical_not().to(torch::kUInt8), /*stable=*/true, 1), device);
  ids_ = ids_.masked_fill(upload(real.logical_not(), device), 0).gather(1, order_);
  last_ = upload((lengths - 1).clamp_min(0), device);
  none_ = upload(lengths.eq(0).unsqueeze(1), device);
}

Batch MosaicRows::slots() const {
  Batch slots;
  slots.inputs = torch::zeros(pairs_.sizes(), torch::kInt64);
  slots.place.run =
      torch::zeros(pairs_.sizes(), torch::kInt64).masked_fill_(pairs_.logical_not(), -1);
  slots.place.segment = slots.place.position = slots.inputs;
  slots.fresh = fresh_;
  return slots;
}

MosaicCall MosaicRows::call(State* state) const {
  MosaicCall call;
  call.state = state;
  call.opening = opening_;
  call.last = last_;
  call.none = none_;
  return call;
}

Hidden MosaicRows::in_order(const Hidden& hidden) const {
  if (!order_.defined()) return hidden;
  const auto back = torch::argsort(order_, /*stable=*/true, 1).unsqueeze(2);
  return {hidden.output.gather(1, back.expand_as(hidden.output)),
          hidden.key.gather(1, back.expand_as(hidden.key))};
}

MosaicCall call_in_ring(KvRing& ring, State& state) {
  auto place = ring.place();
  place.first = place.first + 1;  // the oldest token completes no pair that is still held
  ring.place(place);
  MosaicCall call;
  call.state = &state;
  call.cache = &ring;
  call.opening = false;
  if (place.full) return call;
  call.last = (place.count - 1).clamp_min(0).squeeze(1);
  call.none = place.count.eq(0);
  return call;
}

Tensor sees_pairs(const KvRing& ring) {
  const auto& place = ring.place();
  return (place.position >= place.first).unsqueeze(2);
}

}  // namespace nn
