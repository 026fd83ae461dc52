#include "infer/answers/tree_encoder.h"

namespace infer {
namespace {

using Tokens = std::vector<std::int64_t>;

}  // namespace

std::int64_t TokenTree::longest_branch() const {
  std::int64_t longest = 0;
  for (const auto& branch : branches) longest = std::max(longest, std::ssize(branch));
  return longest;
}

TreeEncoder::TreeEncoder(Engine& engine, const nn::Model& model, const WindowPlan& plan)
    : engine_(engine), plan_(plan),
      forgets_(plan.carried && model.architecture->carry() == nn::Carry::forget),
      in_calls_(nn::arch_facts(model.options.arch).layer_memory),
      again_(!plan.carried && in_calls_) {}

void TreeEncoder::open(std::int64_t rows) {
  engine_.open(rows);
  fed_ = false;
  kept_.clear();
}

nn::Hidden TreeEncoder::go_on(const Tokens& block, bool fresh) {
  if (fresh) open(1);
  return feed({&block})[0];
}

bool TreeEncoder::fits(std::span<const TokenTree> trees, const TokenTree& one_more) const {
  if (trees.empty()) return true;
  if (forgets_) return false;
  std::int64_t rows = 0, longest = 0;
  const auto add = [&](const TokenTree& tree) {
    rows += std::max<std::int64_t>(1, std::ssize(tree.branches));
    longest = std::max(longest, std::ssize(tree.stem) + tree.longest_branch());
  };
  for (const auto& tree : trees) add(tree);
  add(one_more);
  return rows * longest <= plan_.batch_tokens;
}

// Feeds these tokens to the engine's rows. Rows with null or no tokens do not advance. Returns f
// and g of each row.
std::vector<nn::Hidden> TreeEncoder::feed(const std::vector<const Tokens*>& rows) {
  std::int64_t longest = 0;
  for (const auto* row : rows)
    if (row != nullptr) longest = std::max(longest, std::ssize(*row));
  const std::int64_t block = plan_.carried ? plan_.stride : std::max<std::int64_t>(1, longest);
  std::vector<std::vector<nn::Hidden>> pieces(rows.size());
  for (std::int64_t begin = 0, end = 0; begin < longest; begin = end) {
    const bool new_block = begin % block == 0;
    if (new_block && forgets_ && fed_) engine_.forget(plan_.window - plan_.stride);
    fed_ = true;
    end = std::min(longest, (begin / block + 1) * block);
    const bool divided = pace_ != nullptr && !in_calls_;
    const auto most = pace_ != nullptr ? pace_->begin(Pace::Kind::encode) : 0;
    if (divided) end = std::min(end, begin + std::max<std::int64_t>(1, most / std::ssize(rows)));
    std::vector<Feed> feeds(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == nullptr) continue;
      const auto size = std::ssize(*rows[i]);
      feeds[i].tokens.assign(
          rows[i]->begin() + std::min(begin, size), rows[i]->begin() + std::min(end, size));
    }
    const nn::Hidden hidden = engine_.feed(feeds);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto n = std::ssize(feeds[i].tokens);
      if (n > 0) pieces[i].push_back(hidden.slice(at, at + n));
      at += n;
    }
    if (pace_ != nullptr) pace_->end((end - begin) * std::ssize(rows));
  }
  std::vector<nn::Hidden> fed(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) fed[i] = nn::Hidden::concatenate(pieces[i]);
  return fed;
}

// Each stem is a row of the engine.
std::vector<nn::Hidden> TreeEncoder::encode_stems(std::span<const TokenTree> trees) {
  if (trees.size() == 1 && trees[0].stem == kept_) return {kept_hidden_};
  open(std::ssize(trees));
  std::vector<const Tokens*> rows;
  for (const auto& tree : trees) rows.push_back(&tree.stem);
  return feed(rows);
}

std::vector<EncodedTree> TreeEncoder::encode(std::span<const TokenTree> trees, bool keep) {
  if (again_) return encode_again(trees);
  const auto stems = std::ssize(trees);
  std::vector<EncodedTree> encoded(trees.size());
  const auto hidden = encode_stems(trees);
  kept_.clear();
  std::vector<const Tokens*> rows;
  struct Branch {
    std::int64_t tree;
    const Tokens* tokens;
    nn::Hidden* to;
  };
  std::vector<Branch> branches;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < stems; ++i) {
    const auto& tree = trees[static_cast<std::size_t>(i)];
    auto& to = encoded[static_cast<std::size_t>(i)];
    to.stem = hidden[static_cast<std::size_t>(i)];
    to.branches.resize(tree.branches.size());
    for (std::size_t j = 0; j < tree.branches.size(); ++j) {
      if (tree.branches[j].empty()) continue;
      branches.push_back({i, &tree.branches[j], &to.branches[j]});
      longest = std::max(longest, std::ssize(tree.stem) + std::ssize(tree.branches[j]));
    }
  }
  // Copies the rows of the stems. The stems stay first until all branches are encoded.
  const auto together =
      std::max<std::int64_t>(1, plan_.batch_tokens / std::max<std::int64_t>(longest, 1));
  for (std::int64_t begin = 0; begin < std::ssize(branches); begin += together) {
    const std::int64_t end = std::min(begin + together, std::ssize(branches));
    const std::int64_t kept = keep || end < std::ssize(branches) ? stems : 0;
    std::vector<std::int64_t> copies(static_cast<std::size_t>(kept));
    std::iota(copies.begin(), copies.end(), 0);
    rows.assign(static_cast<std::size_t>(kept), nullptr);
    for (std::int64_t i = begin; i < end; ++i) {
      copies.push_back(branches[static_cast<std::size_t>(i)].tree);
      rows.push_back(branches[static_cast<std::size_t>(i)].tokens);
    }
    engine_.select(copies);
    const auto fed = feed(rows);
    for (std::int64_t i = begin; i < end; ++i)
      *branches[static_cast<std::size_t>(i)].to = fed[static_cast<std::size_t>(kept + i - begin)];
  }
  if (keep && stems == 1) {
    if (!branches.empty()) engine_.select({0});
    kept_ = trees[0].stem;
    kept_hidden_ = hidden[0];
  }
  return encoded;
}

// Encodes each branch together with its stem.
std::vector<EncodedTree> TreeEncoder::encode_again(std::span<const TokenTree> trees) {
  std::vector<EncodedTree> encoded;
  for (const auto& tree : trees) {
    EncodedTree& made = encoded.emplace_back();
    const auto read = [&](const Tokens& tokens) { return go_on(tokens, /*fresh=*/true); };
    const auto stem = std::ssize(tree.stem);
    for (const auto& branch : tree.branches) {
      Tokens whole = tree.stem;
      whole.insert(whole.end(), branch.begin(), branch.end());
      const nn::Hidden hidden = read(whole);
      if (!made.stem.output.defined()) made.stem = hidden.slice(0, stem);
      made.branches.push_back(
          branch.empty() ? nn::Hidden{} : hidden.slice(stem, std::ssize(whole)));
    }
    if (!made.stem.output.defined()) made.stem = read(tree.stem);
  }
  return encoded;
}

}  // namespace infer
