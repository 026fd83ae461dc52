#include "shard/verify.h"

#include "core/plain_text.h"
#include "shard/layout.h"
#include "shard/reader.h"

namespace shard {
namespace {

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
  core::OrderedJson json = {{"file", path}, {"ok", ok()}};
  if (!ok()) {
    json["error"] = error;
    return json;
  }
  json["elements"] = trailer.elements;
  json["fingerprint"] = trailer.fingerprint.hex();
  return json;
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
  core::OrderedJson report;
  report["file"] = path;
  report["kind"] = name_of(header.kind);
  report["dtype"] = name_of(header.dtype);
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
    report["named"] = std::count_if(
        names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  report["bytes"] = sum(data.documents().bytes);
  report["words"] = sum(data.documents().words);
  if (header.marked) {
    std::uint64_t learned = 0;
    for (const auto& mark : data.documents().marks) learned += mark.end - mark.begin;
    report["marked"] = learned;
  }
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
  std::string lines;
  for (const auto& entry : data.provenance())
    lines += "made by  " + core::printable(core::dump(entry)) + "\n";
  return lines;
}

}  // namespace shard
