#include "train/shards.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "core/json_get.h"
#include "ranks/transport.h"
#include "train/gradient_buckets.h"

namespace train {
namespace {

// The numbers of a piece, laid flat.
torch::Tensor numbers_of(const torch::Tensor& weight, const Piece& piece) {
  return weight.detach().view({-1}).narrow(0, piece.begin, piece.size());
}

std::int64_t size_of(const std::vector<Piece>& pieces) {
  std::int64_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  return size;
}

// One after the other, on the CPU.
torch::Tensor laid_flat(const std::vector<torch::Tensor>& numbers) {
  std::vector<torch::Tensor> parts{torch::empty({0}, torch::kFloat32)};
  for (const auto& each : numbers) parts.push_back(each.detach().to(torch::kCPU));
  return torch::cat(parts);
}

// Gives a weight's storage memory for so many numbers, all its own.
void resize_storage(const torch::Tensor& weight, std::int64_t numbers) {
  auto* const storage = weight.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(numbers) * weight.element_size();
  if (storage->nbytes() == bytes) return;
  storage->set_data_ptr_noswap(bytes > 0 ? storage->allocator()->allocate(bytes)
                                         : at::DataPtr(nullptr, weight.device()));
  storage->unsafe_set_nbytes(bytes);
}

}  // namespace

std::vector<std::vector<Piece>> cut_in_pieces(const NamedWeights& weights,
                                              const OptimiserOptions& options, std::int64_t ranks) {
  std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& [name, weight] = weights[i];
    const std::int64_t n = weight.numel(), blocks = (n + kNormBlock - 1) / kNormBlock;
    const bool matrix = options.optimiser == "muon" && is_hidden_matrix(name, weight);
    if (matrix || !weight.is_contiguous() || n < ranks * kNormBlock) {
      whole.push_back(i);
      continue;
    }
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      pieces[static_cast<std::size_t>(rank)].push_back(
          {i, rank * blocks / ranks * kNormBlock,
           std::min(n, (rank + 1) * blocks / ranks * kNormBlock)});
  }
  std::stable_sort(whole.begin(), whole.end(), [&](std::size_t a, std::size_t b) {
    return weights[a].second.numel() > weights[b].second.numel();
  });
  std::vector<std::int64_t> sizes;
  for (const auto& of_rank : pieces) sizes.push_back(size_of(of_rank));
  for (const auto i : whole) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    pieces[static_cast<std::size_t>(least - sizes.begin())].push_back(
        {i, 0, weights[i].second.numel()});
    *least += weights[i].second.numel();
  }
  for (auto& of_rank : pieces)
    std::sort(of_rank.begin(), of_rank.end(),
              [](const Piece& a, const Piece& b) { return a.weight < b.weight; });
  return pieces;
}

Shards::Shards(const NamedWeights& weights, const OptimiserOptions& options,
               std::shared_ptr<ranks::Group> group)
    : weights_(weights),
      group_(std::move(group)),
      pieces_(cut_in_pieces(weights, options, group_->size())),
      away_(weights.size()),
      buckets_(buckets_of(weights)) {
  for (const auto& piece : own_pieces()) {
    const auto& [name, weight] = weights_[piece.weight];
    auto values = weight.detach();
    if (piece.size() < weight.numel()) {
      std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
      shape.back() = piece.size();
      values = numbers_of(weight, piece).view(shape);
    }
    own_.emplace_back(name, values);
  }
}

const std::vector<Piece>& Shards::own_pieces() const { return pieces_[rank()]; }

std::vector<Piece> Shards::pieces_of(std::size_t rank,
                                     const std::vector<std::size_t>& which) const {
  std::vector<Piece> found;
  for (const auto& piece : pieces_[rank])
    if (std::find(which.begin(), which.end(), piece.weight) != which.end()) found.push_back(piece);
  return found;
}

std::vector<std::size_t> Shards::own_of(const std::vector<std::size_t>& which) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < own_pieces().size(); ++i)
    if (std::find(which.begin(), which.end(), own_pieces()[i].weight) != which.end())
      found.push_back(i);
  return found;
}

void Shards::take_gradients() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto& piece = own_pieces()[i];
    auto& own = own_[i].second;
    const auto gradient = weights_[piece.weight].second.grad();
    own.mutable_grad() = gradient.defined()
                             ? numbers_of(gradient.contiguous(), piece).view(own.sizes())
                             : torch::zeros_like(own);
  }
}

void Shards::drop_gradients() {
  for (auto& [name, values] : own_) values.mutable_grad().reset();
}

std::vector<torch::Tensor> Shards::reduce(const std::vector<std::size_t>& which,
                                          std::vector<torch::Tensor> gradients, ranks::Sum how) {
  const torch::NoGradGuard no_grad;
  const auto device = gradients[0].device();
  const auto gradient_of = [&](std::size_t weight) {
    return gradients[static_cast<std::size_t>(std::find(which.begin(), which.end(), weight) -
                                              which.begin())];
  };
  const auto own = pieces_of(rank(), which);
  std::vector<torch::Tensor> out, in;
  for (std::size_t other = 0; other < ranks(); ++other) {
    std::vector<torch::Tensor> numbers;
    for (const auto& piece : pieces_of(other, which))
      numbers.push_back(numbers_of(gradient_of(piece.weight), piece));
    out.push_back(laid_flat(numbers));
  }
  gradients.clear();
  for (std::size_t other = 0; other < ranks(); ++other)
    in.push_back(other == rank() ? out[other] : torch::empty({size_of(own)}, torch::kFloat32));
  group_->exchange(0, out, in);
  out.clear();
  ranks::add_up(in, how == ranks::Sum::tree && std::has_single_bit(ranks()));
  in.resize(1);
  std::vector<torch::Tensor> sums;
  std::int64_t at = 0;
  for (const auto& piece : own) {
    // In memory of its own, so that the norm's sums begin where those of a whole gradient do.
    sums.push_back(in[0].narrow(0, at, piece.size()).clone().to(device));
    at += piece.size();
  }
  return sums;
}

void Shards::spread() {
  for (auto bucket : buckets_) {
    std::erase_if(bucket, [&](auto i) { return away_[i]; });
    exchange_pieces(bucket, /*first_alone=*/false);
  }
}

void Shards::exchange_pieces(const std::vector<std::size_t>& which, bool first_alone) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> numbers;
  for (const auto i : own_of(which)) numbers.push_back(own_[i].second.flatten());
  const auto mine = laid_flat(numbers), none = torch::empty({0}, torch::kFloat32);
  std::vector<torch::Tensor> out, in;
  for (std::size_t other = 0; other < ranks(); ++other) {
    const bool sends = !first_alone || other == 0, receives = !first_alone || rank() == 0;
    out.push_back(sends ? mine : none);
    const auto n = receives && other != rank() ? size_of(pieces_of(other, which)) : 0;
    in.push_back(torch::empty({n}, torch::kFloat32));
  }
  group_->exchange(0, out, in);
  if (first_alone && rank() != 0) return;
  in[rank()] = mine;
  for (std::size_t other = 0; other < ranks(); ++other) {
    std::int64_t at = 0;
    for (const auto& piece : pieces_of(other, which)) {
      // Without a new version: a graph may have saved the weight, whose numbers are as before.
      const auto weight = weights_[piece.weight].second.variable_data();
      const auto values = in[other].narrow(0, at, piece.size());
      at += piece.size();
      if (other == rank() && !away_[piece.weight]) continue;  // there already
      if (piece.size() == weight.numel())
        weight.copy_(values.view(weight.sizes()));
      else
        numbers_of(weight, piece).copy_(values);
    }
  }
}

void Shards::send_away(const std::vector<std::size_t>& which) {
  const torch::NoGradGuard no_grad;
  for (const auto i : which) away_[i] = true;
  for (const auto i : own_of(which)) own_[i].second = own_[i].second.clone();
  drop(which);
}

void Shards::take_away(const NamedWeights& whole) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto& piece = own_pieces()[i];
    if (!away_[piece.weight]) continue;
    const auto values = whole[piece.weight].second.contiguous();
    own_[i].second.copy_(numbers_of(values, piece).view(own_[i].second.sizes()));
  }
}

void Shards::fetch(const std::vector<std::size_t>& which, bool first_alone) {
  if (!first_alone || rank() == 0)
    for (const auto i : which) resize_storage(weights_[i].second, weights_[i].second.numel());
  exchange_pieces(which, first_alone);
}

void Shards::drop(const std::vector<std::size_t>& which) {
  for (const auto i : which) resize_storage(weights_[i].second, 0);
}

torch::Tensor Shards::norm() {
  const torch::NoGradGuard no_grad;
  // As many partial sums a piece as square_sums() makes on every rank.
  std::vector<double> own;
  const bool blocks = weights_.front().second.is_cpu();
  for (const auto& [name, values] : own_)
    for (const double sum : square_sums(values.grad())) own.push_back(sum);
  const auto count = [&](const Piece& piece) {
    return blocks ? (piece.size() + kNormBlock - 1) / kNormBlock : std::int64_t{1};
  };
  std::vector<torch::Tensor> in;
  for (const auto& pieces : pieces_) {
    std::int64_t n = 0;
    for (const auto& piece : pieces) n += count(piece);
    in.push_back(torch::empty({n}, torch::kFloat64));
  }
  in[rank()] = torch::tensor(own, torch::kFloat64);
  group_->exchange(0, std::vector<torch::Tensor>(ranks(), in[rank()]), in);
  struct At {
    Piece piece;
    const double* sums;
  };
  std::vector<At> all;
  for (std::size_t other = 0; other < ranks(); ++other) {
    const auto* sums = in[other].const_data_ptr<double>();
    for (const auto& piece : pieces_[other]) {
      all.push_back({piece, sums});
      sums += count(piece);
    }
  }
  std::sort(all.begin(), all.end(), [](const At& a, const At& b) {
    return std::pair(a.piece.weight, a.piece.begin) < std::pair(b.piece.weight, b.piece.begin);
  });
  double sum = 0;
  for (const auto& [piece, sums] : all)
    for (std::int64_t i = 0; i < count(piece); ++i) sum += sums[i];
  return torch::tensor(std::sqrt(sum), torch::kFloat64);
}

void Shards::put(model::Checkpoint& checkpoint, const Optimiser& optimiser) const {
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto& piece = own_pieces()[i];
    const auto& [weight_name, weight] = weights_[piece.weight];
    auto names = optimiser.moment_names(i);
    for (auto& name : names) name = "optimiser." + name;
    if (away_[piece.weight]) {
      names.push_back("model." + weight_name);
      checkpoint.tensors[names.back()] = own_[i].second;
    }
    if (piece.size() == weight.numel()) continue;
    for (const auto& name : names) checkpoint.parts[name] = {weight.sizes().vec(), piece.begin};
  }
}

void Shards::get(const model::Checkpoint& checkpoint, Optimiser& optimiser) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, std::size_t> piece_of;  // of a moment
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const auto& piece = own_pieces()[i];
    auto& own = own_[i].second;
    if (away_[piece.weight])
      own.copy_(
          checkpoint.numbers("model." + own_[i].first, piece.begin, piece.end).view(own.sizes()));
    for (const auto& name : optimiser.moment_names(i)) piece_of[name] = i;
  }
  optimiser.restore([&](const std::string& name) {
    const auto i = piece_of.at(name);
    const auto& piece = own_pieces()[i];
    return checkpoint.numbers("optimiser." + name, piece.begin, piece.end)
        .view(own_[i].second.sizes());
  });
  optimiser.set_numbers(
      core::get<std::vector<double>>(checkpoint.facts, "optimiser", checkpoint.origin));
}

}  // namespace train
