#include "shard/copy.h"

#include "core/plain_text.h"
#include "core/units.h"
#include "shard/layout.h"
#include "shard/reader.h"

namespace shard {
namespace {

constexpr std::size_t kPiece = 1 << 16;

template <class T>
void copy_range(const Dataset& data, std::uint64_t from, std::uint64_t to, std::vector<T>& buffer,
    Writer& writer) {
  while (from < to) {
    buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, to - from)));
    data.read(from, std::span(buffer));
    writer.write(std::span<const T>(buffer));
    from += buffer.size();
  }
}

template <class T>
void copy_as(const Dataset& data, std::size_t first, std::size_t last, Writer& writer,
    const std::function<void(std::uint64_t)>& progress) {
  const Documents& documents = data.documents();
  std::vector<T> buffer;
  const std::uint64_t begin = first == 0 ? 0 : documents.end[first - 1];
  std::uint64_t start = begin;
  for (std::size_t i = first; i < last; ++i) {
    copy_range(data, start, documents.end[i], buffer, writer);
    writer.end_document(documents.bytes[i], documents.words[i], documents.name(i),
        marks_within(documents, start, documents.end[i]));
    start = documents.end[i];
    if (progress) progress(start - begin);
  }
}

// Computes the chain of the documents' digests from the elements.
Chain data_chain(Reader& reader, const Documents& documents) {
  const std::uint64_t element_bytes = size_of(reader.header().dtype);
  Chain chain;
  core::Hasher hash;
  core::Bytes buffer(layout::kRawBytes);
  std::uint64_t start = 0;
  for (const auto end : documents.end) {
    hash.reset();
    for (std::uint64_t left = (end - start) * element_bytes; left > 0;) {
      const auto n = reader.read(std::span(buffer).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()))));
      if (n == 0) return chain;  // the reader reports the error
      hash.update(std::span(buffer).first(n));
      left -= n;
    }
    chain.append(hash.digest());
    start = end;
  }
  return chain;
}

}  // namespace

void copy_documents(const Dataset& data, std::size_t first, std::size_t last, Writer& writer,
    const std::function<void(std::uint64_t)>& progress) {
  switch (data.header().dtype) {
    case Dtype::f32: return copy_as<float>(data, first, last, writer, progress);
    case Dtype::u64: return copy_as<std::uint64_t>(data, first, last, writer, progress);
    default: return copy_as<std::uint32_t>(data, first, last, writer, progress);
  }
}

void CutOptions::fields(core::FieldList& f) {
  f("parts", parts, "split into N shards of about equal size").none_or(1, 1e6).short_name = 'n';
  f("max-documents", documents, "maximum documents per shard").none_or(1, 1e12);
  f("max-bytes", bytes, "maximum bytes of elements per shard; a larger document has its own shard")
      .none_or(1, 0x1p50)
      .bytes();
}

Cut CutOptions::cut() const {
  return {static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(documents),
      static_cast<std::uint64_t>(bytes)};
}

std::vector<std::size_t> part_ends(
    const Header& header, const Documents& documents, const Cut& cut) {
  if ((cut.parts > 0) + (cut.documents > 0) + (cut.bytes > 0) != 1)
    core::bad_usage("--parts, --max-documents and --max-bytes exclude each other; give one");
  // A unit is indivisible: a document, or the two documents of a pair.
  const std::size_t per_unit = header.kind == Kind::pairs ? 2 : 1;
  const std::size_t n = documents.size() / per_unit;
  const auto end_of = [&](std::size_t unit) {
    return documents.end[unit * per_unit + per_unit - 1];
  };
  if (cut.parts > n)
    core::bad_usage("--parts {}: there are only {} {}, and documents are not divided", cut.parts, n,
        per_unit == 2 ? "pairs" : "documents");
  std::vector<std::size_t> ends;
  const auto add = [&](std::size_t units) { ends.push_back(units * per_unit); };
  const std::uint64_t total = n == 0 ? 0 : end_of(n - 1);
  std::size_t done = 0;
  for (std::uint64_t part = 1; done < n; ++part) {
    std::size_t next = done + 1;
    if (cut.parts > 0) {
      // Advances to the document that reaches this part's share. At least one document must remain
      // for each later part.
      const double share =
          static_cast<double>(total) * static_cast<double>(part) / static_cast<double>(cut.parts);
      const std::size_t most = n - static_cast<std::size_t>(cut.parts - part);
      while (next < most && (part == cut.parts || static_cast<double>(end_of(next - 1)) < share))
        ++next;
    } else if (cut.documents > 0) {
      next = done + static_cast<std::size_t>(std::min<std::uint64_t>(cut.documents, n - done));
    } else {
      const std::uint64_t begin = done == 0 ? 0 : end_of(done - 1);
      const std::uint64_t most = cut.bytes / size_of(header.dtype);
      while (next < n && end_of(next) - begin <= most) ++next;
    }
    add(done = next);
  }
  return ends;
}

void merge(const Dataset& data, core::ByteSink& out, int jobs,
    const std::function<void(std::uint64_t)>& progress) {
  auto provenance = data.provenance();
  if (!data.is_of_parts()) {
    refuse_incomplete(data.files());
    const auto inputs =
        core::mapped(data.files(), [](const auto& file) { return file.trailer().fingerprint; });
    provenance.push_back(provenance_entry("shard merge", core::OrderedJson::object(), inputs));
  }
  Writer writer(out, data.header(), provenance, jobs);
  copy_documents(data, 0, data.documents().size(), writer, progress);
  writer.finish();
}

std::string Part::summary() const {
  return fmt::format("{}: {} in {}", path, core::counted(elements, "element"),
      core::counted(documents, "document"));
}

void split(const Dataset& data, const Cut& cut, const std::string& prefix, int jobs,
    const std::function<void(const Part&)>& done) {
  const auto ends = part_ends(data.header(), data.documents(), cut);
  const auto path_of = [&](std::size_t n) { return fmt::format("{}{:05}.shard.zst", prefix, n); };
  if (const auto beyond = path_of(ends.size()); core::exists(beyond))
    core::bad_usage(
        "{}: would stand beside the {} parts as one of them; remove it or give another prefix",
        beyond, ends.size());
  // The first part is renamed last; until then it locks these parts against other processes.
  std::unique_ptr<core::Output> first_out;
  std::vector<Part> parts;
  std::size_t first = 0;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    auto provenance = data.provenance();
    provenance.push_back(provenance_entry(
        "shard split", {{"part", part}, {"parts", ends.size()}}, {data.fingerprint()}));
    const std::string path = path_of(part);
    auto out = std::make_unique<core::Output>(path);
    Writer writer(*out, data.header(), provenance, jobs);
    copy_documents(data, first, ends[part], writer);
    writer.finish();
    if (part == 0) first_out = std::move(out);
    else out->commit();
    parts.push_back({path, writer.elements(), ends[part] - first});
    first = ends[part];
  }
  if (first_out) first_out->commit();
  for (const auto& part : parts) done(part);
}

Trailer verify(const std::string& path) {
  if (path == "-" || !core::is_regular_file(path)) return verify(*core::open_source(path));
  const auto bytes = std::make_shared<core::RandomFile>(path);
  const File file(bytes);
  core::SequentialSource source(*bytes);
  Reader reader(source);
  const Chain data = data_chain(reader, file.trailer().documents);
  std::byte rest[8];
  while (reader.read(std::span(rest)) > 0) {}
  if (data != file.content().data) layout::damaged(path, 0, "the fingerprint of the elements");
  return reader.trailer();
}

core::OrderedJson Verdict::json() const {
  if (!ok()) return {{"file", path}, {"ok", false}, {"error", error}};
  return {{"file", path}, {"ok", true}, {"elements", trailer.elements},
      {"fingerprint", trailer.fingerprint.hex()}};
}

std::string Verdict::line() const {
  if (!ok()) return core::printable(error);
  return fmt::format("{}: ok, {} elements, fingerprint {}", core::printable(path), trailer.elements,
      trailer.fingerprint.hex());
}

Verdict judge(const std::string& path) {
  try {
    return {path, verify(path), {}};
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) throw;
    return {path, {}, error.what()};
  }
}

std::string judge(
    const std::vector<std::string>& paths, const std::function<void(const Verdict&)>& found) {
  std::string first;
  std::size_t bad = 0;
  for (const auto& path : paths) {
    const Verdict verdict = judge(path);
    if (!verdict.ok() && bad++ == 0) first = verdict.error;
    found(verdict);
  }
  return bad > 1 ? fmt::format("{} (and {} more)", first, bad - 1) : first;
}

core::OrderedJson describe(const std::string& path, const Dataset& data) {
  const auto& header = data.header();
  const auto sum = [](const std::vector<std::uint64_t>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  };
  core::OrderedJson report{
      {"file", path}, {"kind", name_of(header.kind)}, {"dtype", name_of(header.dtype)}};
  if (header.kind == Kind::vectors) report["width"] = header.width;
  if (header.vocabulary > 0) report["vocabulary"] = header.vocabulary;
  if (header.kind == Kind::order) {
    report["unit"] = header.unit;
    if (header.unit_length > 0) report["unit_length"] = header.unit_length;
    report["data_fingerprint"] = header.data_fingerprint;
  }
  report["elements"] = data.size();
  report["documents"] = data.documents().size();
  if (const auto& names = data.documents().names; !names.empty())
    report["named"] =
        std::ranges::count_if(names, [](const std::string& name) { return !name.empty(); });
  report["bytes"] = sum(data.documents().bytes);
  report["words"] = sum(data.documents().words);
  if (header.marked)
    report["marked"] = core::sum_of(
        data.documents().marks, [](const Span& mark) { return mark.end - mark.begin; });
  report["fingerprint"] = data.fingerprint().hex();
  if (!header.tokenizer.empty()) {
    const auto tokenizer = core::parse_json(header.tokenizer, path + ": tokenizer");
    const auto model = tokenizer.value("model", core::Json::object());
    report["tokenizer"] = model.is_object() ? model.value("type", "unknown") : "unknown";
    report["tokenizer_fingerprint"] = core::hash128(header.tokenizer).hex();
  }
  return report;
}

std::string made_by(const Dataset& data) {
  return core::sum_of(data.provenance(),
      [](const auto& entry) { return "made by  " + core::printable(core::dump(entry)) + "\n"; });
}

}  // namespace shard
