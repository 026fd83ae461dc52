#include "nn/arch/state_memory.h"

#include "core/collect.h"
#include "nn/base/upload.h"

namespace nn {
namespace {

using torch::Tensor;

// 0 where a and b are equal, else 1 + the highest bit in which they differ; at most levels - 1.
Tensor level_of(const Tensor& a, const Tensor& b, std::int64_t levels) {
  return std::get<1>(torch::frexp(torch::bitwise_xor(a, b).to(torch::kFloat64)))
      .to(torch::kInt64)
      .clamp_max(levels - 1);
}

// Returns x (B, T, ...) with zeros after its steps, `steps` in all.
Tensor extended(const Tensor& x, std::int64_t steps) {
  if (x.size(1) == steps) return x;
  std::vector<std::int64_t> pads(2 * static_cast<std::size_t>(x.dim() - 1));
  pads.back() = steps - x.size(1);
  return at::constant_pad_nd(x, pads);
}

std::int64_t pooled_width(std::int64_t width, std::int64_t heads) {
  return std::max<std::int64_t>(1, width / 2 / heads);
}

}  // namespace

struct StateMemory::Rows {
  const MixerCall& call;
  const std::string& name;
  Tensor seen;   // (B) int64: tokens before the call
  Tensor count;  // (B) int64: tokens of the call

  Tensor after() const { return seen + count; }
  Tensor carried(const char* part) const { return call.carried(name + part); }
  void carry(const char* part, const Tensor& value) const { call.carry(name + part, value); }
};

StateMemory::StateMemory(const StateMemoryOptions& options, std::int64_t width, std::int64_t heads)
    : options_(options), heads_(heads) {
  const auto add = [&](const char* name, std::int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(width, out, bias));
  };
  if (is_tree()) {
    weights_ = add("weights", heads * options.levels, true);
  } else {
    query_ = add("query", heads * pooled_width(width, heads), false);
    pooled_ = add("pooled", heads * pooled_width(width, heads), false);
  }
}

std::int64_t StateMemory::carried(const StateMemoryOptions& options, std::int64_t width,
    std::int64_t heads, std::int64_t numbers) {
  if (options.kind == "none") return 0;
  if (options.kind == "fenwick") return (options.levels - 1) * numbers;
  return options.segments * numbers + (options.segments + 1) * heads * pooled_width(width, heads);
}

GlaOutput StateMemory::read(const Tensor& x, const LinearRecurrence& recurrence,
    const Tensor& start, const MixerCall& call, const std::string& name) const {
  const auto seen = call.carried(name + ".seen");
  const auto none = torch::zeros({x.size(0)}, torch::kInt64);
  const Rows rows{call, name, seen.defined() ? seen.cpu() : none,
      call.count.defined() ? call.count : none + x.size(1)};
  const auto out =
      is_tree() ? read_tree(x, recurrence, rows) : read_segments(x, recurrence, start, rows);
  rows.carry(".seen", rows.after());
  return out;
}

GlaOutput StateMemory::read_segments(const Tensor& x, const LinearRecurrence& recurrence,
    const Tensor& start, const Rows& rows) const {
  const auto b = x.size(0), steps = x.size(1), every = options_.every, most = options_.segments,
             heads = recurrence.v.size(2);
  const auto there = [&](const Tensor& on_host) { return upload(on_host, x.device()); };
  const auto like = x.options().requires_grad(false);
  // The numbers of the kept states' segments, then of those that end in this call; below 0: none.
  const auto ended = rows.seen.div(every, "floor").unsqueeze(1);
  std::vector<Tensor> number, kept, means;
  const auto former = std::min(most, ended.max().item<std::int64_t>());
  if (former > 0) {
    number.push_back(ended + torch::arange(-former, 0));
    kept.push_back(rows.carried(".kept").narrow(1, most - former, former));
    means.push_back(rows.carried(".means").narrow(1, most - former, former));
  }
  // The scan, in pieces that end where the segment of any row ends.
  std::vector<Tensor> out;
  std::vector<std::int64_t> ends;
  GlaOutput now{{}, start};
  for (std::int64_t from = 0, to = 1; from < steps; ++to) {
    const auto end = (rows.seen + to).remainder(every).eq(0) & rows.count.ge(to);
    const bool any = end.any().item<bool>();
    if (!any && to < steps) continue;
    now = recurrence.scan(
        core::mapped(recurrence.steps, [&](auto& part) { return part.narrow(1, from, to - from); }),
        recurrence.v.narrow(1, from, to - from), now.state);
    out.push_back(now.o);
    from = to;
    if (!any) continue;
    number.push_back(torch::where(end, (rows.seen + to).div(every, "floor") - 1, -1).unsqueeze(1));
    kept.push_back(now.state.unsqueeze(1).to(like));
    ends.push_back(to);
  }
  auto o = torch::cat(out, 1);

  // Sums of W_m x over a row's tokens since the call's first segment, and within each segment.
  auto pooled = pooled_->forward(x);
  if (rows.call.real.defined()) pooled = pooled * rows.call.real;
  const auto width = pooled.size(2);
  auto sums = sums_so_far(pooled.view({b, 1, 1, steps, width})).view({b, steps, width});
  if (const auto sum = rows.carried(".sum"); sum.defined()) sums = sums + sum.unsqueeze(1);
  const auto before = at::constant_pad_nd(sums, {0, 0, 1, 0});
  const auto since = [&](const Tensor& step, const Tensor& within) {  // both (B, n)
    const auto first = there((step - within).clamp_min(0)).unsqueeze(2);
    return before.gather(1, first.expand({b, first.size(1), width}));
  };
  const auto step = torch::arange(steps).unsqueeze(0), at = rows.seen.unsqueeze(1) + step,
             within = at.remainder(every);
  const auto mean = (sums - since(step, within)) / there(within + 1).unsqueeze(2);
  if (!ends.empty()) means.push_back(mean.index_select(1, there(torch::tensor(ends) - 1)));

  if (!kept.empty()) {
    const auto numbers = torch::cat(number, 1);
    const auto states = torch::cat(kept, 1), of = torch::cat(means, 1);
    // (B, heads_, T, 1 + kept), the present segment first.
    const auto by_head = [&](const Tensor& y) {
      return y.view({b, y.size(1), heads_, width / heads_}).transpose(1, 2);
    };
    const auto query =
        by_head(query_->forward(x)) * (1 / std::sqrt(static_cast<double>(width / heads_)));
    const auto behind = at.div(every, "floor").unsqueeze(2) - numbers.unsqueeze(1);
    const auto hidden = numbers.lt(0).unsqueeze(1) | behind.lt(1) | behind.gt(most);
    const auto scores =
        query.matmul(by_head(of).transpose(2, 3))
            .masked_fill(there(hidden).unsqueeze(1), -std::numeric_limits<double>::infinity());
    const auto gate = torch::cat({(query * by_head(mean)).sum(3, true), scores}, 3)
                          .softmax(3)
                          .expand({b, heads, steps, 1 + states.size(1)});
    const auto asked = recurrence.steps[0].transpose(1, 2).unsqueeze(3) *
                       gate.slice(3, 1).unsqueeze(4);  // (B, heads, T, kept, d_key)
    const auto read = asked.flatten(3).matmul(states.transpose(1, 2).flatten(2, 3).to(like));
    o = gate.select(3, 0).transpose(1, 2).unsqueeze(3) * o + read.transpose(1, 2);

    if (rows.call.state != nullptr && !ends.empty()) {
      const auto wanted = rows.after().div(every, "floor").unsqueeze(1) + torch::arange(-most, 0);
      const auto pick =
          there(wanted.unsqueeze(2).eq(numbers.unsqueeze(1)) & wanted.ge(0).unsqueeze(2)).to(like);
      rows.carry(".kept", pick.matmul(states.flatten(2)).view({b, most, heads, -1, o.size(3)}));
      rows.carry(".means", pick.matmul(of));
    }
  } else if (rows.call.state != nullptr && !rows.carried(".kept").defined()) {
    rows.carry(".kept", torch::zeros({b, most, heads, start.size(2), start.size(3)}, like));
    rows.carry(".means", torch::zeros({b, most, width}, like));
  }
  if (rows.call.state != nullptr) {
    const auto end = rows.count.unsqueeze(1), rest = rows.after().unsqueeze(1).remainder(every);
    rows.carry(".sum", sums.select(1, steps - 1) - since(end, rest).squeeze(1));
  }
  return {o, now.state};
}

// For a part of a few steps, the scan of unit vectors as values gives what each step reads of each
// earlier one, and what the last state has of it; the scan from the unit matrix gives what each
// step reads of the first state, and how the last state depends on it.
GlaOutput StateMemory::read_tree(
    const Tensor& x, const LinearRecurrence& recurrence, const Rows& rows) const {
  constexpr std::int64_t kPart = 16;
  const auto &q = recurrence.steps[0], &v = recurrence.v;
  const auto b = x.size(0), steps = x.size(1), heads = v.size(2), d_key = q.size(3),
             part = std::min(steps, kPart), parts = (steps + part - 1) / part, whole = parts * part,
             levels = options_.levels;
  const auto there = [&](const Tensor& on_host) { return upload(on_host, x.device()); };
  const auto like = v.options().requires_grad(false);
  const auto cut = [&](const Tensor& y) {
    auto sizes = y.sizes().vec();
    sizes[0] = b * parts, sizes[1] = part;
    return extended(y, whole).reshape(sizes);
  };
  const auto unit = [&](std::int64_t n, std::int64_t left, std::int64_t right) {
    return at::constant_pad_nd(torch::eye(n, like), {left, right});
  };
  const auto scanned = recurrence.scan(core::mapped(recurrence.steps, cut),
      unit(part, 0, d_key).unsqueeze(1).expand({b * parts, part, heads, part + d_key}),
      unit(d_key, part, 0).expand({b * parts, heads, d_key, part + d_key}));
  const auto by_head = [&](const Tensor& y) {  // (B, parts, heads, part, ...)
    return y.view({b, parts, part, heads, -1}).transpose(2, 3);
  };
  const auto read = by_head(scanned.o.to(like)).split_with_sizes({part, d_key}, 4);
  const auto last = scanned.state.to(like)
                        .view({b, parts, heads, d_key, part + d_key})
                        .split_with_sizes({part, d_key}, 4);
  const auto values = by_head(cut(v));

  // Tokens before and after each part, (B, parts, 1); positions, (B, parts, part).
  const auto ends = torch::arange(parts + 1) * part;
  const auto passed = rows.seen.unsqueeze(1) + torch::minimum(ends, rows.count.unsqueeze(1));
  const auto before = passed.narrow(1, 0, parts).unsqueeze(2),
             after = passed.narrow(1, 1, parts).unsqueeze(2),
             at = (rows.seen.unsqueeze(1) + torch::arange(whole)).view({b, parts, part});
  // Block j of the tree, of level j + 1, has the tokens [first_j, first_j + 2^j). Those in use:
  const auto used = std::max<std::int64_t>(1,
      level_of(rows.after().max(), torch::zeros({}, torch::kInt64), levels).item<std::int64_t>());
  const auto bits = torch::arange(1, used + 1);
  const auto first = before.bitwise_right_shift(bits).bitwise_left_shift(bits);
  const auto level = [&](const Tensor& of, const Tensor& seen_from, bool of_blocks) {
    auto found = level_of(of, seen_from, levels);
    if (of_blocks && used == levels - 1) found.select(-1, used - 1).fill_(used);
    return found;
  };
  const auto matrix_to = [&](const Tensor& block) {  // (B, parts, n) -> (B, parts, used, n)
    const auto to = there((block - 1).clamp(0, used - 1)).unsqueeze(2);
    return to.eq(there(bits - 1).view({-1, 1})).to(like);
  };
  auto weights = torch::softplus(weights_->forward(x)) * (1 / std::log(2.0));
  weights = by_head(
      extended(weights, whole).view({b, whole, heads_, levels}).expand({b, whole, heads, levels}));
  const auto weight = [&](const Tensor& of) {  // (B, parts, part, n) -> (B, parts, heads, part, n)
    return weights.gather(4, there(of).unsqueeze(2).expand({-1, -1, heads, -1, -1}));
  };
  const auto own = weight(level(at.unsqueeze(2), at.unsqueeze(3), false));
  const auto o = (read[0] * own).matmul(values);

  // What each part adds to each block, (B, parts, used, heads, d_key, d_value).
  const auto added =
      (matrix_to(level(at, after, false)).view({b, parts, used, 1, 1, part}) * last[0].unsqueeze(2))
          .matmul(values.unsqueeze(2));
  const auto moves = matrix_to(level(first, after, true));  // (B, parts, used, used)
  auto kept = rows.carried(".kept");
  kept = kept.defined() ? kept.narrow(1, 0, used)
                        : torch::zeros({b, used, heads, d_key, v.size(3)}, like);
  std::vector<Tensor> held;
  for (std::int64_t i = 0; i < parts; ++i) {
    held.push_back(kept);
    const auto moved = last[1].select(1, i).unsqueeze(1).matmul(kept.to(like));
    kept = moves.select(1, i).bmm(moved.flatten(2)).view_as(moved) + added.select(1, i);
  }
  const auto asked =
      read[1].unsqueeze(4) * weight(level(first.unsqueeze(2), at.unsqueeze(3), true)).unsqueeze(5);
  const auto carried = asked.flatten(4).matmul(
      torch::stack(held, 1).transpose(2, 3).flatten(3, 4));  // over blocks and d_key
  rows.carry(".kept", extended(kept, levels - 1));
  return {(o + carried).transpose(2, 3).reshape({b, whole, heads, v.size(3)}).narrow(1, 0, steps),
      kept.sum(1)};
}

std::shared_ptr<StateMemory> add_state_memory(torch::nn::Module& owner, const std::string& name,
    const StateMemoryOptions& options, std::int64_t width, std::int64_t heads) {
  if (options.kind == "none") return nullptr;
  return owner.register_module(name, std::make_shared<StateMemory>(options, width, heads));
}

}  // namespace nn
