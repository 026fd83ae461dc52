#include "train/shards.h"

#include "nn/base/cuda.h"

namespace train {
namespace {

// The numbers of a piece, laid flat.
torch::Tensor numbers_of(const torch::Tensor& weight, const Piece& piece) {
  return weight.detach().view({-1}).narrow(0, piece.begin, piece.size());
}

std::int64_t size_of(const std::vector<Piece>& pieces) {
  return core::sum_of(pieces, &Piece::size);
}

// Gives a weight's storage memory for so many numbers, all its own.
void resize_storage(const torch::Tensor& weight, std::int64_t numbers) {
  auto* const storage = weight.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(numbers) * weight.element_size();
  if (storage->nbytes() == bytes) return;
  storage->set_data_ptr_noswap(
      bytes > 0 ? storage->allocator()->allocate(bytes) : at::DataPtr(nullptr, weight.device()));
  storage->unsafe_set_nbytes(bytes);
}

}  // namespace

std::vector<std::vector<Piece>> cut_in_pieces(
    const NamedWeights& weights, const OptimiserOptions& options, std::int64_t ranks) {
  std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(ranks));
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& [name, weight] = weights[i];
    const std::int64_t n = weight.numel(), blocks = (n + kNormBlock - 1) / kNormBlock;
    const bool matrix = options.optimiser == "muon" && nn::is_hidden_matrix(name, weight);
    if (matrix || !weight.is_contiguous() || n < ranks * kNormBlock) {
      whole.push_back(i);
      continue;
    }
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      pieces[static_cast<std::size_t>(rank)].push_back({i, rank * blocks / ranks * kNormBlock,
          std::min(n, (rank + 1) * blocks / ranks * kNormBlock)});
  }
  std::ranges::stable_sort(
      whole, std::greater(), [&](std::size_t i) { return weights[i].second.numel(); });
  auto sizes = core::mapped(pieces, size_of);
  for (const auto i : whole) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    pieces[static_cast<std::size_t>(least - sizes.begin())].push_back(
        {i, 0, weights[i].second.numel()});
    *least += weights[i].second.numel();
  }
  for (auto& of_rank : pieces) std::ranges::sort(of_rank, {}, &Piece::weight);
  return pieces;
}

Shards::Shards(const NamedWeights& weights, const OptimiserOptions& options,
    std::shared_ptr<ranks::Group> group)
    : weights_(weights), group_(std::move(group)),
      pieces_(cut_in_pieces(weights, options, group_->size())), away_(weights.size()),
      buckets_(buckets_of(weights)), side_(group_->reach(device())) {
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

std::vector<Piece> Shards::pieces_of(
    std::size_t rank, const std::vector<std::size_t>& which) const {
  return core::kept(
      pieces_[rank], [&](const Piece& piece) { return core::contains(which, piece.weight); });
}

std::vector<std::size_t> Shards::own_of(const std::vector<std::size_t>& which) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < own_pieces().size(); ++i)
    if (core::contains(which, own_pieces()[i].weight)) found.push_back(i);
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

torch::Tensor Shards::laid_flat(std::vector<torch::Tensor> numbers) const {
  numbers.push_back(torch::empty({0}, weights_.front().second.options().requires_grad(false)));
  return torch::cat(numbers).to(group_->reach(device()));
}

std::vector<torch::Tensor> Shards::reduce(
    const std::vector<std::size_t>& which, std::vector<torch::Tensor> gradients, ranks::Sum how) {
  const torch::NoGradGuard no_grad;
  const auto gradient_of = [&](std::size_t weight) {
    return gradients[static_cast<std::size_t>(std::ranges::find(which, weight) - which.begin())];
  };
  auto slices = core::generated(ranks(), [&](std::size_t other) {
    return laid_flat(core::mapped(pieces_of(other, which),
        [&](const Piece& piece) { return numbers_of(gradient_of(piece.weight), piece); }));
  });
  gradients.clear();
  const auto sent = side_.exists() ? slices : std::vector<torch::Tensor>();
  std::vector<torch::Tensor> sums;
  auto queued = side_.run([&] {
    const auto sum = group_->reduce_scatter(std::move(slices), how);
    std::int64_t at = 0;
    for (const auto& piece : pieces_of(rank(), which)) {
      // In memory of its own, so that the norm's sums begin where those of a whole gradient do.
      sums.push_back(sum.narrow(0, at, piece.size()).clone().to(device()));
      at += piece.size();
    }
  });
  follow_sums();  // of the message before, whose memory is free then
  message_ = {sent, std::move(queued)};
  return sums;
}

void Shards::follow_sums() {
  message_.sum.follow();
  message_ = {};
}

void Shards::spread() {
  for (auto bucket : buckets_) {
    std::erase_if(bucket, [&](auto i) { return away_[i]; });
    exchange_pieces(bucket, /*first_alone=*/false);
  }
}

std::vector<torch::Tensor> Shards::gather_on_first(
    const torch::Tensor& own, const std::vector<std::int64_t>& lengths) {
  const auto none = torch::empty({0}, own.options());
  std::vector<torch::Tensor> out(ranks(), none), in(ranks(), none);
  for (std::size_t other = 1; rank() == 0 && other < ranks(); ++other)
    in[other] = torch::empty({lengths[other]}, own.options());
  (rank() == 0 ? in : out)[0] = own;
  group_->exchange(0, out, in);
  return in;
}

void Shards::exchange_pieces(const std::vector<std::size_t>& which, bool first_alone) {
  const torch::NoGradGuard no_grad;
  const auto lengths =
      core::generated(ranks(), [&](std::size_t other) { return size_of(pieces_of(other, which)); });
  const auto mine = laid_flat(
      core::mapped(own_of(which), [&](std::size_t i) { return own_[i].second.flatten(); }));
  const auto all = first_alone ? gather_on_first(mine, lengths) : group_->gather(mine, lengths);
  if (first_alone && rank() != 0) return;
  std::vector<torch::Tensor> to, from;
  for (std::size_t other = 0; other < ranks(); ++other) {
    const auto numbers = all[other].to(device());
    std::int64_t at = 0;
    for (const auto& piece : pieces_of(other, which)) {
      const auto values = numbers.narrow(0, at, piece.size());
      at += piece.size();
      if (other == rank() && !away_[piece.weight]) continue;  // there already
      // Without a new version: a graph may have saved the weight, whose numbers are as before.
      const auto weight = weights_[piece.weight].second.variable_data();
      to.push_back(piece.size() == weight.numel() ? weight : numbers_of(weight, piece));
      from.push_back(values.view(to.back().sizes()));
    }
  }
  if (!to.empty()) at::_foreach_copy_(to, from);
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

Queued Shards::fetch(const std::vector<std::size_t>& which) {
  for (const auto i : which) resize_storage(weights_[i].second, weights_[i].second.numel());
  return side_.run([&] { exchange_pieces(which, /*first_alone=*/false); });
}

void Shards::fetch_on_first(const std::vector<std::size_t>& which) {
  if (rank() == 0)
    for (const auto i : which) resize_storage(weights_[i].second, weights_[i].second.numel());
  exchange_pieces(which, /*first_alone=*/true);
}

void Shards::drop(const std::vector<std::size_t>& which) {
  for (const auto i : which) resize_storage(weights_[i].second, 0);
}

torch::Tensor Shards::norm() {
  const torch::NoGradGuard no_grad;
  return nn::in_host_memory(weights_.front().second) ? norm_in_blocks() : norm_on_device();
}

torch::Tensor Shards::norm_on_device() {
  const auto gradients = core::mapped(own_, [](const auto& named) { return named.second.grad(); });
  const auto options = weights_.front().second.options().requires_grad(false);
  auto sum = gradients.empty() ? torch::zeros({1}, options.dtype(torch::kFloat64))
                               : torch::stack(at::_foreach_norm(gradients, 2))
                                     .to(torch::kFloat64)
                                     .square()
                                     .sum(0, /*keepdim=*/true);
  sum = sum.to(group_->reach(device()));
  group_->sum(sum);
  return sum[0].sqrt();
}

torch::Tensor Shards::norm_in_blocks() {
  // As many partial sums a piece as square_sums() makes on every rank.
  std::vector<double> own;
  for (const auto& [name, values] : own_)
    for (const double sum : square_sums(values.grad())) own.push_back(sum);
  const auto count = [](const Piece& piece) {
    return (piece.size() + kNormBlock - 1) / kNormBlock;
  };
  const auto counts =
      core::mapped(pieces_, [&](const auto& pieces) { return core::sum_of(pieces, count); });
  const auto sums_of = group_->gather(torch::tensor(own, torch::kFloat64), counts);
  struct At {
    Piece piece;
    const double* sums;
  };
  std::vector<At> all;
  for (std::size_t other = 0; other < ranks(); ++other) {
    const auto* sums = sums_of[other].const_data_ptr<double>();
    for (const auto& piece : pieces_[other]) {
      all.push_back({piece, sums});
      sums += count(piece);
    }
  }
  std::ranges::sort(
      all, {}, [](const At& at) { return std::pair(at.piece.weight, at.piece.begin); });
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
