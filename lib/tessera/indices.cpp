#include "infer/keys/store_build.h"
#include "model/tokenizer_file.h"
#include "ngrams/next_tokens.h"
#include "ngrams/ngrams_builder.h"
#include "tessera/inside.h"
#include "tessera/ngrams.h"
#include "tessera/store.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"

namespace tessera {

void build_store(const std::string& model, const std::vector<std::string>& files,
    const std::string& folder, const Options& options) {
  translated([&] {
    infer::StoreBuildOptions build;
    auto fields = core::list_fields(build);
    build.compute.fields(fields);
    set_fields(fields, options);
    build.model = model;
    const auto place = build.folder(build.append.empty() ? folder : "");
    model::read_texts_for(model, process().threads, send_note);
    infer::StoreBuild work(build, files, place);
    send_note(work.window_note());
    work.fill({});
    send_note(work.summary(work.finish({})));
  });
}

Store::Store(const std::string& folder)
    : store_(translated([&] { return std::make_shared<const store::Datastore>(folder); })) {}

std::int64_t Store::size() const { return store_->size(); }
std::int64_t Store::width() const { return store_->query_width(); }

Store::Hits Store::search(std::span<const float> queries, std::int64_t k) const {
  return translated([&] {
    store::SearchOptions options;
    options.k = k;
    auto hits = store_->search(queries, options);
    return Hits{std::move(hits.ids), std::move(hits.scores), std::move(hits.labels)};
  });
}

void build_ngrams(const std::vector<std::string>& files, const std::string& folder,
    const std::string& tokenizer, const Options& options) {
  translated([&] {
    ngrams::BuildOptions build;
    set_fields(core::list_fields(build), options);
    const auto jobs = process().threads;
    text::read_texts({[tokenizer] { return text::load_tokenizer(tokenizer); }, "the given",
        static_cast<int>(jobs), send_note});
    const shard::Dataset data(files);
    ngrams::build(data, folder, build.cut(data.header().vocabulary, jobs), jobs);
  });
}

Ngrams::Ngrams(const std::vector<std::string>& folders)
    : index_(translated([&] { return std::make_shared<const ngrams::Index>(folders); })) {}

std::uint64_t Ngrams::tokens() const { return index_->tokens(); }
std::uint64_t Ngrams::vocabulary() const { return index_->vocabulary(); }

std::uint64_t Ngrams::count(std::span<const std::uint32_t> tokens) const {
  return translated([&] { return ngrams::Index::count(index_->find(tokens)); });
}

std::vector<Ngrams::Next> Ngrams::next(std::span<const std::uint32_t> context) const {
  return translated([&] {
    ngrams::NextTokens following(index_, 0);
    return core::mapped(following.of(index_->find(context)), [](const auto& next) {
      return Next{next.token, next.count};
    });
  });
}

}  // namespace tessera
