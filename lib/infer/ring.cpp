#include "infer/ring.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace infer {
namespace {

using torch::Tensor;

// A ring begins small and doubles: how far it may reach says nothing of how long the text is.
constexpr std::int64_t kFirstSlots = 64;

// The last `keep` of `end` steps of `n` rows each go to the front; they do not overlap.
void move_to_front(Tensor& tensor, std::int64_t end, std::int64_t keep, std::int64_t n) {
  tensor.slice(0, 0, keep * n).copy_(tensor.slice(0, (end - keep) * n, end * n));
}

}  // namespace

Ring::Ring(std::int64_t capacity, std::int64_t width, torch::TensorOptions options,
           std::int64_t rows)
    : capacity_(capacity), rows_(rows) {
  if (capacity < 1 || rows < 1) core::fail(core::Code::bug, "a ring of {} steps", capacity);
  slots_ = std::min(kFirstSlots, 2 * capacity);
  keys_ = torch::empty({slots_ * rows, width}, options);
  labels_ = torch::empty({slots_ * rows}, options.dtype(torch::kInt64));
  for (Tensor* ids : {&run_, &segment_, &position_})
    *ids = torch::empty({slots_ * rows}, torch::kInt64);
}

Ring Ring::clone() const {
  Ring copy;
  copy.capacity_ = capacity_, copy.rows_ = rows_, copy.slots_ = slots_, copy.begin_ = begin_,
  copy.end_ = end_;
  copy.keys_ = keys_.clone();
  copy.labels_ = labels_.clone();
  copy.run_ = run_.clone(), copy.segment_ = segment_.clone(), copy.position_ = position_.clone();
  return copy;
}

void Ring::resize(std::int64_t slots) {
  for (Tensor* tensor : {&keys_, &labels_, &run_, &segment_, &position_}) {
    auto sizes = tensor->sizes().vec();
    sizes[0] = slots * rows_;
    const Tensor before = std::exchange(*tensor, torch::empty(sizes, tensor->options()));
    tensor->slice(0, 0, end_ * rows_).copy_(before.slice(0, 0, end_ * rows_));
  }
  slots_ = slots;
}

void Ring::append(const Tensor& keys, const Tensor& labels, const nn::Place& place) {
  const std::int64_t given = keys.size(0) / rows_, steps = std::min(given, capacity_);
  if (end_ + steps > slots_ && slots_ < 2 * capacity_)
    resize(std::min(2 * capacity_, std::max(2 * slots_, end_ + steps)));
  if (end_ + steps > slots_) {
    const std::int64_t keep = std::min(size(), capacity_ - steps);
    for (Tensor* tensor : {&keys_, &labels_, &run_, &segment_, &position_})
      move_to_front(*tensor, end_, keep, rows_);
    begin_ = 0, end_ = keep;
  }
  const auto put = [&](Tensor& to, const Tensor& from) {
    to.slice(0, end_ * rows_, (end_ + steps) * rows_)
        .copy_(from.slice(0, (given - steps) * rows_, given * rows_));
  };
  put(keys_, keys);
  put(labels_, labels);
  put(run_, place.run);
  put(segment_, place.segment);
  put(position_, place.position);
  end_ += steps;
  begin_ = std::max(begin_, end_ - capacity_);
}

nn::Entries Ring::view(std::int64_t skip, std::int64_t at_most) const {
  const std::int64_t last = std::max(begin_, end_ - skip);
  const std::int64_t begin = (last - std::min(last - begin_, at_most)) * rows_, end = last * rows_;
  return {
      keys_.slice(0, begin, end),
      labels_.slice(0, begin, end),
      {run_.slice(0, begin, end), segment_.slice(0, begin, end), position_.slice(0, begin, end)}};
}

void Ring::select(const Tensor& rows) {
  const std::int64_t begin = begin_ * rows_, end = end_ * rows_, steps = size(), n = rows.size(0);
  for (Tensor* tensor : {&keys_, &labels_, &run_, &segment_, &position_}) {
    const Tensor by_step = tensor->slice(0, begin, end).unflatten(0, {steps, rows_});
    const Tensor chosen = by_step.index_select(1, rows.to(tensor->device())).flatten(0, 1);
    if (n != rows_) {
      auto sizes = tensor->sizes().vec();
      sizes[0] = slots_ * n;
      *tensor = torch::empty(sizes, tensor->options());
    }
    tensor->slice(0, 0, steps * n).copy_(chosen);
  }
  rows_ = n, begin_ = 0, end_ = steps;
  Tensor runs = run_.slice(0, 0, steps * n).unflatten(0, {steps, n});
  runs.copy_(torch::where(runs < 0, runs, torch::arange(n).expand_as(runs)));
}

void Ring::clear() { begin_ = end_ = 0; }

}  // namespace infer
