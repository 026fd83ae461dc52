#include "ranks/agreement.h"

#include "core/error.h"

namespace ranks {

void expect_agreement(Group& group, const core::OrderedJson& own) {
  if (group.is_alone()) return;
  const auto texts = group.gather(core::dump(own));
  const auto first = core::OrderedJson::parse(texts[0]);
  const auto value = [](const core::OrderedJson& object, const std::string& key) {
    return object.contains(key) ? core::dump(object[key]) : "nothing";
  };
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const auto other = core::OrderedJson::parse(texts[rank]);
    for (const auto& object : {first, other}) {
      for (const auto& [key, ignored] : object.items()) {
        const auto here = value(first, key), there = value(other, key);
        if (here != there)
          core::fail(core::Code::usage,
                     "{}: rank 0 has {}, rank {} has {}; give all ranks the same", key, here, rank,
                     there);
      }
    }
  }
}

void expect_same_digest(Group& group, const std::string& what, const std::string& digest) {
  const auto digests = group.gather(digest);
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] != digests[0])
      core::fail(
          core::Code::bug,
          "{} of rank {} differ from rank 0: a fault of a machine, the network or this program; "
          "rerun to resume from the last checkpoint",
          what, rank);
  }
}

}  // namespace ranks
