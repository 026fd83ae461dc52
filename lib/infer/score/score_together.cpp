#include "infer/score/score_together.h"

#include "core/error.h"
#include "infer/stores/shared_stores.h"
#include "ranks/agreement.h"
#include "ranks/rank_options.h"

namespace infer {

std::optional<PartsSum> score_together(
    const SharedEvaluation& what, std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress) {
  const auto& options = what.options;
  const core::Part part{group->rank(), group->size()};
  group->together([&] { ranks::expect_files(what.files); });
  ranks::expect_agreement(*group, {{"datastore-ranks", what.own_stores},
                                   {"batch-tokens", options.windows.batch_tokens},
                                   {"jobs", at::get_num_threads()}});
  // Whatever a rank refuses, it refuses before another one begins to score.
  model::Loaded loaded;
  group->together([&] { loaded = options.load(); });
  std::shared_ptr<const Stores> stores;
  if (what.own_stores) stores = share_stores(options.memory.lookup(), loaded, group);
  const StoreOpener shared = [&](const auto&, const auto&) { return stores; };
  std::optional<Evaluation> evaluation;
  std::optional<shard::Dataset> data;
  group->together([&] {
    evaluation.emplace(options, what.given, std::move(loaded), stores ? shared : StoreOpener());
    data.emplace(evaluation->open(what.files));
    evaluation->expect_part(*data, part);
  });
  if (what.say) what.say(evaluation->part_note());
  std::string own;
  const auto score = [&] {
    const std::uint64_t of = data->size() / static_cast<std::uint64_t>(part.count);
    own = to_text(evaluation->score_part(*data, part, [&](std::uint64_t done) {
      if (group->interrupted()) core::fail(core::Code::rank_lost, "another rank was lost");
      progress(done, of);
    }));
  };
  // Searches of shared stores are collective calls of their own.
  if (what.own_stores) {
    score();
  } else {
    group->together(score);
  }
  std::vector<NamedLine> lines;
  for (auto& line : group->gather(own))
    lines.push_back({fmt::format("rank {}", lines.size()), std::move(line)});
  std::optional<PartsSum> sum;
  group->together([&] {
    if (group->first()) sum = sum_parts(lines);
  });
  return sum;
}

}  // namespace infer
