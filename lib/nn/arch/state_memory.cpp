#include "nn/arch/state_memory.h"

#include "nn/base/upload.h"

namespace nn {
namespace {

// 0 where a and b are equal, else 1 + the highest bit in which they differ; at most levels - 1.
Tensor level_of(const Tensor& a, const Tensor& b, std::int64_t levels) {
  const auto different = torch::bitwise_xor(a, b).to(torch::kFloat64);
  return std::get<1>(torch::frexp(different)).to(torch::kInt64).clamp_max(levels - 1);
}

// Returns what q (B, heads, n, d_key) reads in states (B, S, heads, d_key, d_value), with their
// weights (B, heads, n, S): (B, heads, n, d_value).
Tensor read_in(const Tensor& states, const Tensor& weights, const Tensor& q) {
  const auto asked = (q.unsqueeze(3) * weights.unsqueeze(4)).flatten(3);
  return asked.matmul(states.transpose(1, 2).flatten(2, 3).to(asked.dtype()));
}

}  // namespace

// n tokens of all rows, and what is carried from part to part.
struct StateMemory::Part {
  Tensor x, real;  // (B, n, width), (B, n, 1) or undefined
  LinearRecurrence of;
  Tensor at, after;  // (B, n) int64: positions; (B, 1): the row's tokens so far
  Tensor state, kept, means, sum;

  Tensor there(const Tensor& on_host) const { return upload(on_host, x.device()); }
};

StateMemory::StateMemory(const StateMemoryOptions& options, std::int64_t width, std::int64_t heads)
    : options_(options), heads_(heads) {
  const bool tree = options.kind == "fenwick";
  const auto out = tree ? heads * options.levels : (width + 1) / 2 * 2;
  if (options.kind != "none")
    weights_ = register_module("weights", std::make_shared<Linear>(width, out, /*bias=*/tree));
}

std::int64_t StateMemory::carried(
    const StateMemoryOptions& options, std::int64_t width, std::int64_t numbers) {
  const auto pooled = (width + 1) / 2;
  if (options.kind == "segments") return options.segments * (numbers + pooled) + pooled;
  return options.kind == "fenwick" ? (options.levels - 1) * numbers : 0;
}

GlaOutput StateMemory::read(const Tensor& x, const LinearRecurrence& of, const Tensor& start,
    const MixerCall& call, const std::string& name) const {
  if (weights_ == nullptr) return of.scan(of.steps, of.v, start);
  const bool tree = options_.kind == "fenwick";
  const auto b = x.size(0), steps = x.size(1), width = (x.size(2) + 1) / 2,
             most = tree ? options_.levels - 1 : options_.segments;
  const auto carried = [&](const char* what, torch::IntArrayRef sizes, torch::TensorOptions like) {
    const auto held = call.carried(name + what);
    return held.defined() ? held : torch::zeros(sizes, like.requires_grad(false));
  };
  const auto seen = carried(".seen", {b, 1}, torch::kInt64).cpu(),
             count = call.count.defined() ? call.count.unsqueeze(1) : torch::full({b, 1}, steps);
  const std::vector<std::int64_t> kept = {b, most, start.size(1), start.size(2), start.size(3)};
  Part part{{}, {}, {}, {}, {}, start, carried(".kept", kept, start.options()),
      carried(".means", {b, most, width}, x.options()), carried(".sum", {b, width}, x.options())};
  std::vector<Tensor> read;
  for (std::int64_t from = 0, n = 0; from < steps; from += n) {
    // A segment of any row ends at the end of a part.
    const auto rest = options_.every - (seen + from).remainder(options_.every).max();
    n = std::min<std::int64_t>(steps - from, tree ? 32 : rest.item<std::int64_t>());
    const auto cut = [&](const Tensor& y) { return y.defined() ? y.narrow(1, from, n) : y; };
    part.x = cut(x), part.real = cut(call.real);
    part.of = {core::mapped(of.steps, cut), cut(of.v), of.scan};
    part.at = seen + torch::arange(from, from + n);
    part.after = seen + count.clamp_max(from + n);
    read.push_back(tree ? read_tree(part) : read_segment(part));
  }
  call.carry(name + ".seen", part.after);
  call.carry(name + ".kept", part.kept);
  if (!tree) call.carry(name + ".means", part.means), call.carry(name + ".sum", part.sum);
  return {torch::cat(read, 2).transpose(1, 2), tree ? part.kept.sum(1) : part.state};
}

Tensor StateMemory::read_segment(Part& part) const {
  const auto [x, real, of, at, after, state, kept, means, sum] = part;
  const auto b = x.size(0), n = x.size(1), width = sum.size(1), most = options_.segments;
  const auto by_head = [&](const Tensor& y) {
    return y.reshape({b, y.size(1), heads_, width / heads_}).transpose(1, 2);
  };
  const auto now = of.scan(of.steps, of.v, state);
  const auto parts = weights_->forward(x).chunk(2, 2);
  const auto pooled = real.defined() ? parts[1] * real : parts[1];
  const auto sums =
      sums_so_far(pooled.reshape({b, 1, 1, n, width})).view_as(pooled) + sum.unsqueeze(1);
  const auto mean = sums / part.there(at.remainder(options_.every) + 1).unsqueeze(2);
  const auto ended = at.slice(1, 0, 1).div(options_.every, "floor");
  const auto states = std::min(most, ended.max().item<std::int64_t>());
  const auto newest = [&](const Tensor& y) { return y.narrow(1, most - states, states); };
  const auto query = by_head(parts[0]) * std::pow(static_cast<double>(width / heads_), -0.5);
  const auto absent = part.there(torch::arange(states, 0, -1) > ended).view({b, 1, 1, states});
  const auto scores = query.matmul(by_head(newest(means)).transpose(2, 3))
                          .masked_fill(absent, -std::numeric_limits<double>::infinity());
  const auto gates = torch::cat({(query * by_head(mean)).sum(3, true), scores}, 3)
                         .softmax(3)
                         .expand({b, of.v.size(2), n, 1 + states});
  const auto end = after.remainder(options_.every).eq(0) & after.gt(at.slice(1, n - 1));
  if (end.any().item<bool>()) {
    const auto ends = part.there(end).unsqueeze(2);
    const auto next = [&](const Tensor& all, const Tensor& one) {
      const auto moved = torch::cat({all.slice(1, 1), one.unsqueeze(1)}, 1);
      return torch::where(ends, moved.flatten(2), all.flatten(2)).view_as(all);
    };
    part.kept = next(kept, now.state);
    part.means = next(means, mean.select(1, n - 1));
  }
  part.state = now.state;
  part.sum = sums.select(1, n - 1).masked_fill(part.there(end), 0);
  return gates.slice(3, 0, 1) * now.o.transpose(1, 2) +
         read_in(newest(kept), gates.slice(3, 1), of.steps[0].transpose(1, 2));
}

// The scan of unit vectors as values gives what each token reads of each earlier one, and what the
// last state has of it; from the unit matrix, what each token reads of the first state, and how the
// last state depends on it.
Tensor StateMemory::read_tree(Part& part) const {
  const auto& v = part.of.v;
  const auto b = v.size(0), n = v.size(1), heads = v.size(2), levels = options_.levels,
             d_key = part.kept.size(3);
  const auto units = torch::eye(n + d_key, v.options().requires_grad(false));
  const auto scanned = part.of.scan(part.of.steps,
      units.slice(0, 0, n).unsqueeze(1).expand({b, n, heads, n + d_key}),
      units.slice(0, n).expand({b, heads, d_key, n + d_key}));
  const auto read = scanned.o.transpose(1, 2).to(v.dtype()), last = scanned.state.unsqueeze(1),
             values = v.transpose(1, 2);
  // Block j of the tree, of level j + 1, begins with token first_j. Those in use:
  const auto longest = part.after.max().clamp_min(1);
  const auto used = level_of(longest, torch::zeros_like(longest), levels).item<std::int64_t>();
  const auto blocks = torch::arange(1, used + 1);
  auto first = torch::minimum(part.at.slice(1, 0, 1), part.after)
                   .bitwise_right_shift(blocks)
                   .bitwise_left_shift(blocks);
  if (used == levels - 1) first.select(1, used - 1).zero_();  // the last has all older tokens
  const auto to_blocks = [&](const Tensor& tokens) {          // (B, m) -> (B, used, m) of 0 and 1
    const auto level = level_of(tokens, part.after, levels).clamp(1, used);
    return part.there(level.unsqueeze(1).eq(blocks.unsqueeze(1))).to(last.dtype());
  };
  const auto all = (torch::softplus(weights_->forward(part.x)) * (1 / std::log(2.0)))
                       .view({b, n, heads_, levels})
                       .transpose(1, 2)
                       .expand({b, heads, n, levels});
  const auto weights = [&](const Tensor& tokens) {  // (B, m) -> (B, heads, n, m)
    const auto level = level_of(tokens.unsqueeze(1), part.at.unsqueeze(2), levels);
    return all.gather(3, part.there(level).unsqueeze(1).expand({b, heads, n, tokens.size(1)}));
  };
  const auto kept = part.kept.slice(1, 0, used).to(last.dtype());
  const auto moved = last.slice(4, n).matmul(kept);
  const auto added = (to_blocks(part.at).view({b, used, 1, 1, n}) * last.slice(4, 0, n))
                         .matmul(values.unsqueeze(1).to(last.dtype()));
  part.kept = torch::cat(
      {to_blocks(first).bmm(moved.flatten(2)).view_as(moved) + added, part.kept.slice(1, used)}, 1);
  return (read.slice(3, 0, n) * weights(part.at)).matmul(values) +
         read_in(kept, weights(first), read.slice(3, n));
}

}  // namespace nn
