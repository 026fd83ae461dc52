#include "nn/ops/tiled_attend.h"

#include <mutex>

#include "nn/base/cuda.h"
#include "nn/kernels/relative_attention_kernels.h"
#include "nn/kernels/tiled_attention_kernels.h"

namespace nn {
namespace {

// Returns one head (n, width) of one row of a tensor (B, heads, n, width) with a contiguous last
// dimension.
template <class Float>
MatrixOf<Float> head_from(Float* data, const Tensor& t, std::int64_t row, std::int64_t head) {
  return {data + row * t.stride(0) + head * t.stride(1), t.size(2), t.size(3), t.stride(2)};
}
Matrix read_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_from(t.const_data_ptr<float>(), t, row, head);
}
MatrixOut write_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_from(t.data_ptr<float>(), t, row, head);
}

// Returns an empty tensor with x's shape (B, heads, n, width) in the memory order (B, n, heads,
// width), which the neighbouring layers use.
Tensor room_like(const Tensor& x) {
  return torch::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
}

Tensor dense_rows(const Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

// Calls f(row, head, kernel, inputs) for all heads of all rows. An empty mask means no mask.
template <class F>
void each_head(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const TiledAttend& o, F f) {
  const TiledAttentionShape shape{
      q.size(2), k.size(2), q.size(3), static_cast<float>(o.scale), o.causal};
  const DropoutStream stream(o.dropout, o.seed);
  const auto heads = q.size(1);
  at::parallel_for(0, q.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    TiledAttention kernel(shape, stream);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto row = i / heads, head = i % heads;
      TiledAttention::Inputs in{
          read_head(q, row, head), read_head(k, row, head), read_head(v, row, head)};
      in.head = static_cast<std::uint64_t>(i);
      if (mask.dim() == 4) {
        in.mask = mask.const_data_ptr<float>() + row * mask.stride(0) + head * mask.stride(1);
        in.mask_row = mask.stride(2);
      }
      f(row, head, kernel, in);
    }
  });
}

class AttendInTiles : public torch::autograd::Function<AttendInTiles> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
      const Tensor& mask, const TiledAttend& options) {
    const auto heads = q.size(1), steps = q.size(2);
    const Tensor o = room_like(q), log_sums = torch::empty({q.size(0), heads, steps}, q.options());
    each_head(q, k, v, mask, options, [&](auto row, auto head, auto& kernel, const auto& in) {
      kernel.forward(
          in, write_head(o, row, head), log_sums.data_ptr<float>() + (row * heads + head) * steps);
    });
    context->save_for_backward({q, k, v, mask, o});
    context->saved_data["log_sums"] = log_sums;
    context->saved_data["causal"] = options.causal;
    context->saved_data["reals"] = std::vector<double>{options.scale, options.dropout};
    context->saved_data["seed"] = static_cast<std::int64_t>(options.seed);
    return o;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto s = context->get_saved_variables();
    const Tensor &q = s[0], &k = s[1], &v = s[2], &mask = s[3], &o = s[4];
    auto& data = context->saved_data;
    const Tensor log_sums = data["log_sums"].toTensor(), d_o = dense_rows(gradients[0]);
    const auto reals = data["reals"].toDoubleVector();
    const TiledAttend options{reals[0], data["causal"].toBool(), reals[1],
        static_cast<std::uint64_t>(data["seed"].toInt())};
    const auto heads = q.size(1), steps = q.size(2);
    const Tensor dq = room_like(q), dk = room_like(k), dv = room_like(v);
    each_head(q, k, v, mask, options, [&](auto row, auto head, auto& kernel, const auto& in) {
      kernel.backward(in, log_sums.const_data_ptr<float>() + (row * heads + head) * steps,
          {read_head(o, row, head), read_head(d_o, row, head), write_head(dq, row, head),
              write_head(dk, row, head), write_head(dv, row, head)});
    });
    data.erase("log_sums");
    return {dq, dk, dv, Tensor(), Tensor()};
  }
};

// Returns one head (n, width) of one row of a tensor (rows, n, heads, width) with data `data`.
template <class Float>
MatrixOf<Float> head_at(Float* data, const Tensor& t, std::int64_t row, std::int64_t head) {
  return {data + row * t.stride(0) + head * t.size(-1), t.size(1), t.size(-1), t.stride(1)};
}
Matrix in_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at(t.const_data_ptr<float>(), t, row, head);
}
MatrixOut out_head(const Tensor& t, std::int64_t row, std::int64_t head) {
  return head_at(t.data_ptr<float>(), t, row, head);
}

RelativeInputs inputs_of(const Tensor& content, const Tensor& position, const Tensor& kv,
    const Tensor& r, std::int64_t row, std::int64_t head) {
  return {in_head(content, row, head), in_head(position, row, head),
      in_head(kv.select(2, 0), row, head), in_head(kv.select(2, 1), row, head),
      in_head(r.unsqueeze(0), 0, head)};
}

// Options common to all heads.
struct InBlocksOptions {
  std::int64_t before;
  double scale, dropout;
  std::uint64_t seed;
};

// Calls f(row, head, kernel) for all heads of all rows.
template <class F>
void each_head(const Tensor& content, const Tensor& kv, const Tensor& first,
    const InBlocksOptions& options, F f) {
  const auto heads = content.size(2);
  const RelativeShape shape{content.size(1), kv.size(1), content.size(3), 0, options.before,
      static_cast<float>(options.scale), DropoutStream(options.dropout, options.seed)};
  const auto* const begins = first.numel() > 0 ? first.const_data_ptr<std::int64_t>() : nullptr;
  at::parallel_for(0, content.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto own = shape;
      own.first = begins == nullptr ? 0 : begins[i / heads];
      own.head = static_cast<std::uint64_t>(i);
      RelativeHead kernel(own);
      f(i / heads, i % heads, kernel);
    }
  });
}

class InBlocks : public torch::autograd::Function<InBlocks> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& content, const Tensor& position,
      const Tensor& kv, const Tensor& r, const Tensor& first, const InBlocksOptions& options) {
    const auto rows = content.size(0), steps = content.size(1), heads = content.size(2);
    const Tensor out = torch::empty_like(content);
    const Tensor log_sums = torch::empty({rows, heads, steps}, content.options());
    each_head(content, kv, first, options,
        [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
          kernel.forward(inputs_of(content, position, kv, r, row, head), out_head(out, row, head),
              log_sums.data_ptr<float>() + (row * heads + head) * steps);
        });
    context->save_for_backward({content, position, kv, r, first, out});
    context->saved_data["log_sums"] = log_sums;
    context->saved_data["before"] = options.before;
    context->saved_data["reals"] = std::vector<double>{options.scale, options.dropout};
    context->saved_data["seed"] = static_cast<std::int64_t>(options.seed);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto s = context->get_saved_variables();
    const Tensor &content = s[0], &position = s[1], &kv = s[2], &r = s[3], &first = s[4];
    const Tensor log_sums = context->saved_data["log_sums"].toTensor();
    const Tensor d_out = gradients[0].contiguous();
    const auto heads = content.size(2), steps = content.size(1);
    const Tensor d_content = torch::empty_like(content), d_position = torch::empty_like(content),
                 d_kv = torch::empty_like(kv);
    // One copy per row; the copies are added in the order of rows.
    const Tensor d_r = torch::empty({kv.size(0), r.size(0), r.size(1), r.size(2)}, r.options());
    const auto reals = context->saved_data["reals"].toDoubleVector();
    const InBlocksOptions options{context->saved_data["before"].toInt(), reals[0], reals[1],
        static_cast<std::uint64_t>(context->saved_data["seed"].toInt())};
    each_head(content, kv, first, options,
        [&](std::int64_t row, std::int64_t head, RelativeHead& kernel) {
          kernel.backward(inputs_of(content, position, kv, r, row, head),
              log_sums.const_data_ptr<float>() + (row * heads + head) * steps,
              {in_head(d_out, row, head), in_head(s[5], row, head), out_head(d_content, row, head),
                  out_head(d_position, row, head), out_head(d_kv.select(2, 0), row, head),
                  out_head(d_kv.select(2, 1), row, head), out_head(d_r, row, head)});
        });
    context->saved_data.erase("log_sums");
    return {d_content, d_position, d_kv, d_r.sum(0), Tensor(), Tensor()};
  }
};

}  // namespace

std::uint64_t draw_seed() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

bool tiled_attend_fits(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const auto fits = [](const Tensor& x) {
    return in_host_memory(x) && x.scalar_type() == torch::kFloat32;
  };
  return fits(q) && fits(k) && fits(v) && q.size(0) == k.size(0) && k.size(2) > 0 &&
         (!mask.defined() || (fits(mask) && mask.dim() == 4 && !mask.requires_grad()));
}

Tensor tiled_attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const TiledAttend& options) {
  Tensor added = torch::empty({0}, q.options().requires_grad(false));
  if (mask.defined()) {
    const auto dense = dense_rows(mask.expand({-1, -1, -1, k.size(2)}));
    added = dense.expand({q.size(0), q.size(1), q.size(2), k.size(2)});
  }
  return AttendInTiles::apply(dense_rows(q), dense_rows(k), dense_rows(v), added, options);
}

torch::Tensor relative_attend_blocks(const torch::Tensor& content, const torch::Tensor& position,
    const torch::Tensor& kv, const torch::Tensor& r, const torch::Tensor& first,
    std::int64_t before, double scale, double dropout, std::uint64_t seed) {
  return InBlocks::apply(content.contiguous(), position.contiguous(), kv.contiguous(),
      r.contiguous(), first.defined() ? first : torch::empty({0}),
      InBlocksOptions{before, scale, dropout, seed});
}

}  // namespace nn
