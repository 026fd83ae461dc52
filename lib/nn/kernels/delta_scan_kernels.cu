#include "nn/kernels/delta_scan_kernels.h"

#include "nn/kernels/launch.h"

// The formulas of delta_scan_kernels.cpp, with the substitution as a product:
//
//  M = (I + P diag(beta))^-1      Z = M (V - diag(e^b) K S),  U = diag(beta) Z
//  d_Z = M^T diag(beta) d_U,      where d_U is the gradient from o and from the last state
//
// P, A and M of all chunks are computed at once. The loop over chunks runs in a block per 32
// channels of the values, which are independent. The other gradients are computed per chunk.

namespace nn {
namespace {

constexpr int kTile = 32, kThreads = 256, kWarps = kThreads / kWarp, kOwn = kTile / kWarps;
static_assert(kDeltaChunk == kTile && kWarp == kTile);

// A thread holds the elements (row(r), lane()) of a tile, for r < kOwn.
__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int row(int r) { return static_cast<int>(threadIdx.x) / kWarp + r * kWarps; }

// Factors of products. Each gives element (i, j) for element r of a row or column that a warp reads
// together.
struct Matrix {  // in memory; 0 outside its bounds
  static constexpr bool kByRow = true;
  const float* data;
  std::int64_t rows, columns, stride;
  __device__ float operator()(std::int64_t i, std::int64_t j) const {
    return i < rows && j < columns ? data[i * stride + j] : 0.0f;
  }
  __device__ float operator()(int, std::int64_t i, std::int64_t j) const { return (*this)(i, j); }
  __device__ Matrix from_row(std::int64_t i) const {
    return {data + i * stride, rows - i, columns, stride};
  }
  __device__ Matrix from_column(std::int64_t j) const {
    return {data + j, rows, columns - j, stride};
  }
};
struct Turned {
  static constexpr bool kByRow = false;
  Matrix of;
  __device__ float operator()(int, std::int64_t i, std::int64_t j) const { return of(j, i); }
};
template <bool kRows> struct Elements {  // elements held by the threads, of a tile or its transpose
  static constexpr bool kByRow = kRows;
  const float (&of)[kOwn];
  __device__ float operator()(int r, std::int64_t, std::int64_t) const { return of[r]; }
};
using Own = Elements<true>;
using OwnTurned = Elements<false>;

struct alignas(16) Four {
  float x[4];
};
struct Tiles {
  Four a[kTile][kTile / 4 + 1];
  float b[kTile][kTile + 1];
};

// sum[r] += sum over i < depth of a(row(r), i) b(i, lane()). All threads of a block must call it.
template <class A, class B>
__device__ void add_product(
    Tiles& tiles, std::int64_t depth, const A& a, const B& b, float (&sum)[kOwn]) {
  for (std::int64_t begin = 0; begin < depth; begin += kTile) {
    __syncthreads();  // threads may still read the previous tiles
    for (int r = 0; r < kOwn; ++r) {
      const int a_row = A::kByRow ? row(r) : lane(), a_column = A::kByRow ? lane() : row(r),
                b_row = B::kByRow ? row(r) : lane(), b_column = B::kByRow ? lane() : row(r);
      tiles.a[a_row][a_column / 4].x[a_column % 4] = a(r, a_row, begin + a_column);
      tiles.b[b_row][b_column] = b(r, begin + b_row, b_column);
    }
    __syncthreads();
    for (int i = 0; i < kTile; i += 4) {
      float x[4];
      for (int j = 0; j < 4; ++j) x[j] = tiles.b[i + j][lane()];
      for (int r = 0; r < kOwn; ++r) {
        const Four four = tiles.a[row(r)][i / 4];
        for (int j = 0; j < 4; ++j) sum[r] += four.x[j] * x[j];
      }
    }
  }
}

__device__ inline void scale(float (&x)[kOwn], const float (&by)[kOwn]) {
  for (int r = 0; r < kOwn; ++r) x[r] *= by[r];
}

// The steps of a chunk of one head of one row. Steps beyond the last step have no effect.
struct Chunk {
  const DeltaInputs& in;
  std::int64_t first, n;  // (row, step, head) of its first step; number of steps
  __device__ Chunk(const DeltaInputs& inputs, std::int64_t head, std::int64_t chunk) : in(inputs) {
    const std::int64_t begin = chunk * kTile, left = in.steps - begin;
    first = (head / in.heads * in.steps + begin) * in.heads + head % in.heads;
    n = left < kTile ? left : kTile;
  }
  __device__ std::int64_t step(std::int64_t t) const { return first + t * in.heads; }
  __device__ Matrix keys(const float* of) const {
    return {of + first * in.d_key, n, in.d_key, in.heads * in.d_key};
  }
  __device__ Matrix values(const float* of) const {
    return {of + first * in.d_value, n, in.d_value, in.heads * in.d_value};
  }
  __device__ float gate(const float* of, std::int64_t t) const { return t < n ? of[step(t)] : 0; }
  __device__ void put(
      float x, std::int64_t t, std::int64_t channel, std::int64_t width, float* to) const {
    if (t < n && channel < width) to[step(t) * width + channel] = x;
  }
};

// The matrices P, A and M of a chunk.
struct Squares {
  Matrix p, a, m;
  __device__ Squares(const float* of, std::int64_t item)
      : p(square(of, 3 * item)), a(square(of, 3 * item + 1)), m(square(of, 3 * item + 2)) {}
  __device__ static Matrix square(const float* of, std::int64_t i) {
    return {of + i * kTile * kTile, kTile, kTile, kTile};
  }
};

// The factors of the thread's rows: e^{b_t}, e^{b_n - b_t}, and fade_ts with s = lane(). `whole` is
// e^{b_n}, where n is the chunk's last step.
struct Fades {
  float from_start[kOwn], to_end[kOwn], fade[kOwn], whole;
  __device__ explicit Fades(const Chunk& chunk) {
    const float own = chunk.gate(chunk.in.log_decay, lane());
    double b = 0;  // up to step lane()
    for (int s = 0; s < kTile; ++s) {
      const float x = __shfl_sync(0xffffffffu, own, s);
      if (s <= lane()) b += static_cast<double>(x);
    }
    const double last = __shfl_sync(0xffffffffu, b, kTile - 1);
    whole = expf(static_cast<float>(last));
    for (int r = 0; r < kOwn; ++r) {
      const double b_t = __shfl_sync(0xffffffffu, b, row(r));
      from_start[r] = expf(static_cast<float>(b_t));
      to_end[r] = expf(static_cast<float>(last - b_t));
      fade[r] = lane() <= row(r) ? expf(static_cast<float>(b_t - b)) : 0.0f;
    }
  }
};

// Computes P, A and M, one block per chunk of a head.
__global__ void weigh(DeltaInputs in, float* squares) {
  __shared__ Tiles tiles;
  __shared__ float written[kTile][kTile + 1], inverse[kTile][kTile + 1];  // P diag(beta), M
  const std::int64_t item = blockIdx.x;
  const Chunk chunk(in, item / in.chunks(), item % in.chunks());
  const Fades fades(chunk);
  const Matrix q = chunk.keys(in.q), k = chunk.keys(in.k);
  float* const to = squares + 3 * item * kTile * kTile;
  float p[kOwn] = {}, a[kOwn] = {};
  add_product(tiles, in.d_key, k, Turned{k}, p);
  add_product(tiles, in.d_key, q, Turned{k}, a);
  for (int r = 0; r < kOwn; ++r) {
    const int at = row(r) * kTile + lane();
    p[r] = lane() < row(r) ? p[r] * fades.fade[r] : 0.0f;
    to[at] = p[r];
    to[kTile * kTile + at] = a[r] * fades.fade[r];
    written[row(r)][lane()] = p[r] * chunk.gate(in.beta, lane());
  }
  __syncthreads();
  if (threadIdx.x >= kTile) return;
  for (int t = 0; t < kTile; ++t) {  // each thread solves a column
    float x = t == lane() ? 1.0f : 0.0f;
    for (int s = 0; s < t; ++s) x -= written[t][s] * inverse[s][lane()];
    inverse[t][lane()] = x;
    to[2 * kTile * kTile + t * kTile + lane()] = x;
  }
}

// States of all heads along the chunks: (B, heads, n, d_key, d_value). n is 1 if each chunk
// overwrites the state before it.
struct States {
  float* data;
  std::int64_t n;
  __device__ float* at(const DeltaInputs& in, std::int64_t head, std::int64_t i) const {
    return data + (head * n + (n > 1 ? i : 0)) * in.d_key * in.d_value;
  }
  __device__ Matrix of(const DeltaInputs& in, std::int64_t head, std::int64_t i) const {
    return {at(in, head, i), in.d_key, in.d_value, in.d_value};
  }
};

// The channels of a head's values that a block computes.
struct Channels {
  std::int64_t head, first;
  __device__ explicit Channels(const DeltaInputs& in) {
    const std::int64_t tiles = (in.d_value + kTile - 1) / kTile;
    head = blockIdx.x / tiles;
    first = blockIdx.x % tiles * kTile;
  }
};

// Stores the thread's elements of the 32 keys from `key` on.
__device__ inline void put(const float (&x)[kOwn], const DeltaInputs& in, std::int64_t key,
    std::int64_t channel, float* to) {
  for (int r = 0; r < kOwn; ++r)
    if (key + row(r) < in.d_key && channel < in.d_value)
      to[(key + row(r)) * in.d_value + channel] = x[r];
}

// Loops from the first chunk to the last. o or z may be null.
__global__ void read_and_write(
    DeltaInputs in, const float* squares, States states, float* o, float* z) {
  __shared__ Tiles tiles;
  const Channels own(in);
  for (std::int64_t i = 0; i < in.chunks(); ++i) {
    const Chunk chunk(in, own.head, i);
    const Fades fades(chunk);
    const Squares square(squares, own.head * in.chunks() + i);
    const Matrix q = chunk.keys(in.q), k = chunk.keys(in.k),
                 v = chunk.values(in.v).from_column(own.first),
                 before = states.of(in, own.head, i).from_column(own.first);
    const std::int64_t channel = own.first + lane();
    float left[kOwn] = {}, u[kOwn] = {}, out[kOwn] = {};
    add_product(tiles, in.d_key, k, before, left);
    for (int r = 0; r < kOwn; ++r) left[r] = v(row(r), lane()) - fades.from_start[r] * left[r];
    add_product(tiles, kTile, square.m, Own{left}, u);
    for (int r = 0; r < kOwn; ++r) {
      if (z != nullptr) chunk.put(u[r], row(r), channel, in.d_value, z);
      u[r] *= chunk.gate(in.beta, row(r));
    }
    if (o != nullptr) {
      add_product(tiles, in.d_key, q, before, out);
      scale(out, fades.from_start);
      add_product(tiles, kTile, square.a, Own{u}, out);
      for (int r = 0; r < kOwn; ++r) chunk.put(out[r], row(r), channel, in.d_value, o);
    }
    scale(u, fades.to_end);
    for (std::int64_t key = 0; key < in.d_key; key += kTile) {
      float next[kOwn];
      for (int r = 0; r < kOwn; ++r) next[r] = fades.whole * before(key + row(r), lane());
      add_product(tiles, kTile, Turned{k.from_column(key)}, Own{u}, next);
      put(next, in, key, channel, states.at(in, own.head, i + 1));
    }
  }
}

// Loops from the last chunk to the first. Computes the gradients of v, u and the states.
__global__ void back_in_time(DeltaInputs in, DeltaRoom room, DeltaGradients<float> g) {
  __shared__ Tiles tiles;
  const Channels own(in);
  const States states{room.d_states, in.chunks() + 1};
  for (std::int64_t i = in.chunks() - 1; i >= 0; --i) {
    const Chunk chunk(in, own.head, i);
    const Fades fades(chunk);
    const Squares square(room.squares, own.head * in.chunks() + i);
    const Matrix q = chunk.keys(in.q), k = chunk.keys(in.k),
                 d_out = chunk.values(g.d_o).from_column(own.first),
                 after = states.of(in, own.head, i + 1).from_column(own.first);
    const std::int64_t channel = own.first + lane();
    float d_o[kOwn], d_u[kOwn] = {}, weighed[kOwn], d_z[kOwn] = {}, later[kOwn] = {};
    for (int r = 0; r < kOwn; ++r) d_o[r] = d_out(row(r), lane());
    add_product(tiles, in.d_key, k, after, d_u);
    scale(d_u, fades.to_end);
    add_product(tiles, kTile, Turned{square.a}, Own{d_o}, d_u);
    for (int r = 0; r < kOwn; ++r) weighed[r] = chunk.gate(in.beta, row(r)) * d_u[r];
    add_product(tiles, kTile, Turned{square.m}, Own{weighed}, d_z);
    add_product(tiles, kTile, Turned{square.p}, Own{d_z}, later);
    for (int r = 0; r < kOwn; ++r) {
      chunk.put(d_z[r], row(r), channel, in.d_value, g.d_v);
      chunk.put(d_u[r] - later[r], row(r), channel, in.d_value, room.d_u);
      d_o[r] *= fades.from_start[r];
      d_z[r] *= -fades.from_start[r];
    }
    for (std::int64_t key = 0; key < in.d_key; key += kTile) {
      float d_state[kOwn];
      for (int r = 0; r < kOwn; ++r) d_state[r] = fades.whole * after(key + row(r), lane());
      add_product(tiles, kTile, Turned{q.from_column(key)}, Own{d_o}, d_state);
      add_product(tiles, kTile, Turned{k.from_column(key)}, Own{d_z}, d_state);
      put(d_state, in, key, channel, states.at(in, own.head, i));
    }
  }
}

// Returns the dot product of row t of x and y, in every lane of the warp.
__device__ inline float row_dot(const Matrix& x, const Matrix& y, int t) {
  float sum = 0;
  for (std::int64_t j = lane(); j < x.columns; j += kWarp) sum += x(t, j) * y(t, j);
  return warp_sum(sum);
}

// Computes the gradients of q, k and the gates, one block per chunk of a head.
__global__ void share_out(DeltaInputs in, DeltaRoom room, DeltaGradients<float> g) {
  __shared__ Tiles tiles;
  __shared__ float gates[kTile], parts[kWarps];
  const std::int64_t head = blockIdx.x / in.chunks(), i = blockIdx.x % in.chunks();
  const Chunk chunk(in, head, i);
  const Fades fades(chunk);
  const States states{room.states, in.chunks() + 1}, d_states{room.d_states, in.chunks() + 1};
  const Matrix q = chunk.keys(in.q), k = chunk.keys(in.k), z = chunk.values(room.z),
               d_z = chunk.values(g.d_v), d_o = chunk.values(g.d_o), d_u = chunk.values(room.d_u),
               before = states.of(in, head, i), after = states.of(in, head, i + 1),
               d_after = d_states.of(in, head, i + 1);
  float d_a[kOwn] = {}, d_p[kOwn] = {}, to_end[kOwn], gate[kOwn] = {};
  add_product(tiles, in.d_value, d_o, Turned{z}, d_a);
  add_product(tiles, in.d_value, d_z, Turned{z}, d_p);
  const float beta = chunk.gate(in.beta, lane());
  for (int r = 0; r < kOwn; ++r) {
    d_a[r] *= beta * fades.fade[r];
    d_p[r] *= lane() < row(r) ? -beta * fades.fade[r] : 0.0f;
    to_end[r] = chunk.gate(in.beta, row(r)) * fades.to_end[r];
    const float d_beta = row_dot(d_u, z, row(r));
    if (lane() == 0) chunk.put(d_beta, row(r), 0, 1, g.d_beta);
  }
  for (std::int64_t key = 0; key < in.d_key; key += kTile) {
    const Matrix k_here = k.from_column(key), q_here = q.from_column(key);
    float d_q[kOwn] = {}, read[kOwn] = {}, written[kOwn] = {};
    add_product(tiles, in.d_value, d_o, Turned{before.from_row(key)}, d_q);
    scale(d_q, fades.from_start);
    add_product(tiles, kTile, Own{d_a}, k_here, d_q);
    add_product(tiles, in.d_value, d_z, Turned{before.from_row(key)}, read);
    for (int r = 0; r < kOwn; ++r) read[r] *= -fades.from_start[r];
    add_product(tiles, kTile, Own{d_p}, k_here, read);
    add_product(tiles, in.d_value, z, Turned{d_after.from_row(key)}, written);
    scale(written, to_end);
    add_product(tiles, kTile, OwnTurned{d_p}, k_here, written);
    add_product(tiles, kTile, OwnTurned{d_a}, q_here, written);
    for (int r = 0; r < kOwn; ++r) {
      chunk.put(d_q[r], row(r), key + lane(), in.d_key, g.d_q);
      chunk.put(read[r] + written[r], row(r), key + lane(), in.d_key, g.d_k);
      gate[r] += q_here(row(r), lane()) * d_q[r] + k_here(row(r), lane()) * (read[r] - written[r]);
    }
  }
  for (int r = 0; r < kOwn; ++r) {
    const float sum = warp_sum(gate[r]);
    if (lane() == 0) gates[row(r)] = sum;
  }
  float across = 0;
  for (std::int64_t j = threadIdx.x; j < in.d_key * in.d_value; j += kThreads)
    across += after.data[j] * d_after.data[j];
  across = block_sum(across, parts);  // its barriers make all gates visible
  if (threadIdx.x > 0) return;
  for (std::int64_t t = chunk.n - 1; t >= 0; --t) {
    across += gates[t];
    chunk.put(across, t, 0, 1, g.d_log_decay);
  }
}

dim3 chunks_of(const DeltaInputs& in) {
  return dim3(static_cast<unsigned>(in.rows * in.heads * in.chunks()));
}
dim3 channels_of(const DeltaInputs& in) {
  return dim3(static_cast<unsigned>(in.rows * in.heads * ((in.d_value + kTile - 1) / kTile)));
}

}  // namespace

int delta_forward_cuda(
    const DeltaInputs& in, float* squares, float* state, float* o, void* stream) {
  if (const int error = launch(weigh, chunks_of(in), kThreads, stream, in, squares)) return error;
  return launch(
      read_and_write, channels_of(in), kThreads, stream, in, squares, States{state, 1}, o, nullptr);
}

int delta_backward_cuda(
    const DeltaInputs& in, const DeltaRoom& room, const DeltaGradients<float>& g, void* stream) {
  const States states{room.states, in.chunks() + 1};
  if (const int error = launch(weigh, chunks_of(in), kThreads, stream, in, room.squares))
    return error;
  if (const int error = launch(read_and_write, channels_of(in), kThreads, stream, in, room.squares,
          states, nullptr, room.z))
    return error;
  if (const int error = launch(back_in_time, channels_of(in), kThreads, stream, in, room, g))
    return error;
  return launch(share_out, chunks_of(in), kThreads, stream, in, room, g);
}

}  // namespace nn
