#include "nn/ops/rank_one_scan.h"

#include "nn/base/recomputing.h"
#include "nn/ops/gla_scan.h"

namespace nn {

// Within a chunk with S before it, let c be the sums of log_decay from its start and u_t the
// product a_t^T S_{t-1}. Then
//   u_t = (a_t e^{c_{t-1}})^T S + sum over s < t of (a_t e^{c_{t-1}} . w_s e^{-c_s}) x_s
//   o_t = (q_t e^{c_t})^T S + sum over s <= t of (q_t e^{c_t} . w_s e^{-c_s}) x_s
// where each step s has two pairs (w, x): (b, u) and (k, v). The u solve a triangular system. The
// chunks are so short that no exponent is above 60 (float64: 640).
RankOneOutput rank_one_scan(const RankOneInput& in) {
  using torch::Tensor;
  const ExactProducts exact_products;
  const bool wide = in.q.scalar_type() == torch::kFloat64;
  const auto type = wide ? torch::kFloat64 : torch::kFloat32;
  const auto steps = in.q.size(1), chunk = std::min<std::int64_t>(steps, !in.strong ? 32
                                                                         : wide     ? 16
                                                                                    : 4);
  if (steps == 0) return {torch::zeros_like(in.v), in.start};
  const auto cut = [&](const Tensor& x) { return in_chunks(x.to(type), chunk); };
  const Tensor decay = cut(in.strong ? in.log_decay.clamp_min(wide ? -40 : -15) : in.log_decay),
               c = sums_so_far(decay), v = cut(in.v), last = c.narrow(3, chunk - 1, 1);
  const Tensor reads = torch::cat({cut(in.a) * (c - decay).exp(), cut(in.q) * c.exp()}, 3),
               pairs = torch::cat({cut(in.b), cut(in.k)}, 3), twice = torch::cat({c, c}, 3);
  const Tensor seen = torch::ones({chunk, chunk}, c.options().requires_grad(false)).tril(),
               earlier = seen.tril(-1);
  const auto scores =
      reads.matmul((pairs * (-twice).exp()).transpose(-1, -2)) *
      torch::cat({torch::cat({earlier, earlier}, 1), torch::cat({seen, seen}, 1)}, 0);
  const auto of_a = scores.narrow(3, 0, chunk), of_q = scores.narrow(3, chunk, chunk);
  const auto solved = at::linalg_solve_triangular(-of_a.narrow(4, 0, chunk),
      torch::cat({of_a.narrow(4, chunk, chunk).matmul(v), reads.narrow(3, 0, chunk)}, -1),
      /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  const auto to_end = (pairs * (last - twice).exp()).transpose(-1, -2),
             keep = last.exp().transpose(-1, -2);
  std::vector<Tensor> out;
  Tensor state = in.start.to(type);
  for (std::int64_t i = 0; i < v.size(2); ++i) {
    const auto parts = solved.select(2, i).split_with_sizes({v.size(4), in.q.size(3)}, -1);
    const auto x = torch::cat({parts[0] + parts[1].matmul(state), v.select(2, i)}, 2);
    out.push_back(
        reads.select(2, i).narrow(2, chunk, chunk).matmul(state) + of_q.select(2, i).matmul(x));
    state = keep.select(2, i) * state + to_end.select(2, i).matmul(x);
  }
  return {from_chunks(torch::stack(out, 2), steps), state};
}

}  // namespace nn
