// bm25-search: builds a BM25 index of a text's passages, and finds passages for queries.
//
// build: FILE: shards of tokens (man 5 shard), several as one; `-` or none is stdin. stdout, or -o:
// the index. find: FILE: queries, one per line; `-` or none is stdin. stdout: a JSON line for each
// hit.

#include "cli/progress.h"
#include "cli/summary.h"
#include "passages/passage_index.h"

namespace {

struct BuildOptions {
  std::vector<std::string> files;
  passages::PassageOptions passages;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens; stdin if - or not given");
    passages.fields(f);
  }
};

int build(const BuildOptions& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  core::Output out(context.output);
  cli::Progress progress(context, "indexing", "passages");
  passages::write_passages(
      options.files, options.passages, static_cast<int>(context.jobs), progress.counter(), out);
  out.commit();
  return 0;
}

int find(const passages::FindOptions& options, const cli::Context& context) {
  const passages::PassageIndex index(options.index);
  core::Output out(context.output);
  cli::Progress progress(context, "searching", "queries");
  passages::find_passages(
      index, options, static_cast<int>(context.jobs), out, [&](std::uint64_t queries) {
        out.flush();
        progress.update(queries);
      });
  out.commit();
  return 0;
}

struct InfoOptions {
  std::vector<std::string> files;
  void fields(core::FieldList& f) { f.positional("INDEX", files, "indices of passages"); }
};

int info(const InfoOptions& options, const cli::Context& context) {
  if (options.files.empty()) core::bad_usage("give an INDEX");
  std::string text;
  for (const auto& path : options.files)
    text += cli::format_report(context, passages::describe(passages::PassageIndex(path)));
  cli::write_output(context, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  BuildOptions made;
  passages::FindOptions sought;
  InfoOptions looked_at;
  return cli::run(argc, argv,
      {"bm25-search", "Index the passages of a text for BM25, and search them.",
          "  bm25-search find -i wiki.bm25 <queries.txt | jq .text"},
      {cli::command("build", "Write an index of a text's passages.",
           "  bm25-search build --passage 100 train.shard.zst -o train.bm25", made, build),
          cli::command("find", "Print the best passages of each query.",
              "  bm25-search find -i train.bm25 --k 3 <queries.txt", sought, find, {"index"}),
          cli::command("info", "Check every byte of an index and describe it.",
              "  bm25-search info train.bm25", looked_at, info)});
}
