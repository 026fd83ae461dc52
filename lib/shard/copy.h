#pragma once
// Joining and cutting shards by documents.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/options.h"
#include "shard/dataset.h"
#include "shard/writer.h"

namespace shard {

/// Appends documents first .. last - 1 of `data`. `progress` is told the elements done so far.
void copy_documents(const Dataset& data, std::size_t first, std::size_t last, Writer& writer,
                    const std::function<void(std::uint64_t)>& progress = {});

/// All of `data` as one shard, which is what several are worth together; of all parts of one
/// command the shard that it writes without parts. The same whatever `jobs`. Throws Error{usage}
/// where some are parts, but not all the parts of one command.
void merge(const Dataset& data, core::ByteSink& out, int jobs,
           const std::function<void(std::uint64_t)>& progress = {});

/// How to cut; one of the three is not 0.
struct Cut {
  std::uint64_t parts = 0;      ///< so many, of about as many elements each
  std::uint64_t documents = 0;  ///< so many documents (of pairs: pairs) a part, fewer in the last
  std::uint64_t bytes = 0;  ///< as many documents a part as this many bytes of elements hold, at
                            ///< least one
};

/// The same as flags say it.
struct CutOptions {
  std::int64_t parts = 0, documents = 0, bytes = 0;
  void fields(core::FieldList& f);
  Cut cut() const;
};

/// One past the last document of each part; a pair stays whole. Throws Error{usage} if there are
/// fewer documents than parts, or unless exactly one member of `cut` is set.
std::vector<std::size_t> part_ends(const Header& header, const Documents& documents,
                                   const Cut& cut);

/// A shard that split() wrote.
struct Part {
  std::string path;
  std::uint64_t elements = 0;
  std::size_t documents = 0;

  std::string summary() const;
};
/// Writes PREFIX00000.shard.zst, PREFIX00001.shard.zst, ..., each whole or not at all, then calls
/// `done` for each in order. Throws Error{usage} as part_ends(), Error{cannot_create}, Error{io}.
void split(const Dataset& data, const Cut& cut, const std::string& prefix, int jobs,
           const std::function<void(const Part&)>& done);

}  // namespace shard
