#include "infer/loops/device_engine.h"

#include <algorithm>

#include "core/error.h"
#include "infer/decode/chosen_rows.h"
#include "nn/base/arch_facts.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

constexpr std::int64_t kLeast = 64;  // slots

nn::DecoderStack* decoder_of(const nn::Model& model) {
  return dynamic_cast<nn::DecoderStack*>(model.architecture.get());
}

}  // namespace

bool DeviceEngine::fits(const nn::Model& model, torch::Device device) {
  return !device.is_cpu() && decoder_of(model) != nullptr &&
         !nn::arch_facts(model.options.arch).reads_source;
}

DeviceEngine::DeviceEngine(nn::Model& model, torch::Device device, bool record)
    : model_(model),
      decoder_(*decoder_of(model)),
      device_(device),
      ring_(kLeast),
      token_(device, record) {}

void DeviceEngine::open(std::int64_t rows) {
  if (rows != std::ssize(rows_)) ring_ = nn::KvRing(kLeast), token_.reset();
  rows_.assign(static_cast<std::size_t>(rows), {});
}

nn::Hidden DeviceEngine::feed(const std::vector<Feed>& feeds) {
  const torch::NoGradGuard no_gradient;
  std::int64_t steps = 1;
  for (const auto& feed : feeds) steps = std::max(steps, std::ssize(feed.tokens));
  for (std::size_t row = 0; row < feeds.size(); ++row)
    if (feeds[row].fresh) rows_[row] = {};
  make_room(steps);
  const auto told = numbers(feeds, steps);
  const nn::Hidden all = steps == 1 ? run_token(told) : run(nn::upload(told, device_));
  std::vector<std::int64_t> real;
  for (std::int64_t row = 0; row < std::ssize(feeds); ++row)
    for (std::int64_t t = 0; t < std::ssize(feeds[static_cast<std::size_t>(row)].tokens); ++t)
      real.push_back(row * steps + t);
  const auto index = nn::upload(torch::tensor(real, torch::kInt64), device_);
  return {all.f.flatten(0, 1).index_select(0, index), all.g.flatten(0, 1).index_select(0, index)};
}

// Slots for so many tokens more of every row.
void DeviceEngine::make_room(std::int64_t steps) {
  std::int64_t slots = ring_.slots(), needed = 0;
  std::vector<std::int64_t> last;
  for (const auto& row : rows_) {
    needed = std::max(needed, row.held() + steps);
    last.push_back(row.end - 1);
  }
  if (needed <= slots) return;
  while (slots < needed) slots *= 2;
  token_.reset();
  ring_.grow(slots, nn::upload(torch::tensor(last, torch::kInt64).unsqueeze(1), device_));
}

// What the device is told of a call, (B, 3 T + 2) int64: ids, positions, slots, the row's newest and
// oldest position. The rows hold the tokens from here on.
torch::Tensor DeviceEngine::numbers(const std::vector<Feed>& feeds, std::int64_t steps) {
  const auto context = decoder_.context();
  auto all = torch::zeros({std::ssize(feeds), 3 * steps + 2}, torch::kInt64);
  auto* ids = all.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < feeds.size(); ++i, ids += 3 * steps + 2) {
    const auto& tokens = feeds[i].tokens;
    Row& row = rows_[i];
    auto *const positions = ids + steps, *const slots = positions + steps;
    if (context && row.end + std::ssize(tokens) > *context)
      core::fail(core::Code::bad_data, "a row of {} tokens is longer than the {} positions learned",
                 row.end + std::ssize(tokens), *context);
    std::copy(tokens.begin(), tokens.end(), ids);
    for (std::int64_t t = 0; t < steps; ++t) {
      if (t < std::ssize(tokens)) positions[t] = row.end + t;
      slots[t] = (row.end + t) % ring_.slots();
    }
    row.end += std::ssize(tokens);
    slots[steps] = row.end - 1;
    slots[steps + 1] = row.begin;
  }
  return all;
}

nn::Hidden DeviceEngine::run(const torch::Tensor& numbers) {
  const auto steps = (numbers.size(1) - 2) / 3;
  const auto part = [&](std::int64_t i, std::int64_t n) { return numbers.narrow(1, i * steps, n); };
  const auto ends = numbers.narrow(1, 3 * steps, 2).split(1, 1);
  ring_.place({part(1, steps), part(2, steps), ends[0], ends[1]});
  return decoder_.decode(part(0, steps), ring_);
}

nn::Hidden DeviceEngine::run_token(const torch::Tensor& numbers) {
  const auto told = nn::upload(numbers, device_);
  if (now_.defined() && now_.sizes() == told.sizes()) {
    now_.copy_(told);
  } else {
    now_ = told;
  }
  token_.run([this] { next_ = run(now_); });
  return next_;
}

void DeviceEngine::select(const std::vector<std::int64_t>& rows) {
  if (rows.size() != rows_.size()) token_.reset();
  rows_ = chosen(rows_, rows);
  ring_.select(nn::upload(torch::tensor(rows, torch::kInt64), device_));
}

void DeviceEngine::forget(std::int64_t keep) {
  for (auto& row : rows_) row.begin = std::max(row.begin, row.end - keep);
}

void DeviceEngine::take_back(const std::vector<std::int64_t>& tokens) {
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].end -= tokens[i];
}

}  // namespace infer
