#include "shard/writer.h"

#include "core/parallel.h"
#include "shard/documents_codec.h"
#include "shard/layout.h"

namespace shard {

struct Writer::Impl {
  Impl(core::ByteSink& sink_, Header header_, std::vector<core::OrderedJson> provenance_, int jobs)
      : sink(sink_), header(std::move(header_)), provenance(std::move(provenance_)),
        element_bytes(size_of(header.dtype)), frames(jobs, make_compressor, [this](Frame& frame) {
          emit(frame.bytes, frame.raw_bytes);
        }) {
    raw.reserve(layout::kRawBytes);
    emit(layout::encode_header(header), 0);
  }

  struct Frame {
    core::Bytes bytes;
    std::size_t raw_bytes;
  };
  static core::InOrder<core::Bytes, Frame>::Work make_compressor() {
    const std::shared_ptr<ZSTD_CCtx> context = make_compress_context();
    return [context](core::Bytes& raw, Frame& frame) {
      compress_frame(context.get(), raw, frame.bytes);
      frame.raw_bytes = raw.size();
    };
  }
  void push() {
    frames.input().swap(raw);
    raw.clear();
    frames.push();
  }

  void emit(std::span<const std::byte> frame, std::size_t raw_bytes) {
    file_hash.update(frame);
    table.push_back(
        {static_cast<std::uint32_t>(frame.size()), static_cast<std::uint32_t>(raw_bytes)});
    sink.write(frame);
  }

  // Narrows `in` to Stored, up to the rest of a frame at a time.
  template <class Stored, class T> void append(std::span<const T> in) {
    while (!in.empty()) {
      const std::size_t n = std::min(in.size(), (layout::kRawBytes - raw.size()) / sizeof(Stored));
      const std::size_t at = raw.size();
      raw.resize(at + n * sizeof(Stored));
      for (std::size_t i = 0; i < n; ++i) {
        const auto x = static_cast<Stored>(in[i]);
        std::memcpy(raw.data() + at + i * sizeof x, &x, sizeof x);
      }
      document_hash.update(std::span(raw).subspan(at));
      in = in.subspan(n);
      if (raw.size() == layout::kRawBytes) push();
    }
  }

  template <class T> void append_integers(std::span<const T> in) {
    if (in.empty()) return;
    if (header.dtype == Dtype::f32) core::bug("integers written to a shard of f32");
    const T most = *std::max_element(in.begin(), in.end());
    if (header.vocabulary > 0 && most >= header.vocabulary)
      core::bad_data("element {} is not below the vocabulary of {}", most, header.vocabulary);
    if (header.dtype == Dtype::u32 && most > UINT32_MAX)
      core::bad_data("element {} does not fit u32", most);
    switch (header.dtype) {
      case Dtype::u8: return append<std::uint8_t>(in);
      case Dtype::u16: return append<std::uint16_t>(in);
      case Dtype::u32: return append<std::uint32_t>(in);
      default: return append<std::uint64_t>(in);
    }
  }

  void end_document(std::uint64_t source_bytes, std::uint64_t source_words, std::string_view name,
      const std::vector<Span>& marks) {
    std::uint64_t at = 0;
    for (const auto& mark : marks) {
      if (!header.marked || mark.begin < at || mark.end <= mark.begin ||
          mark.end > elements - content.elements)
        core::bug(
            "mark [{}, {}) of a document of {}", mark.begin, mark.end, elements - content.elements);
      at = mark.end;
    }
    n_marks += marks.size();
    if (elements % header.width != 0)
      core::bad_data("{} numbers are no whole rows of {}", elements, header.width);
    documents.append(elements - content.elements, source_bytes, source_words, name,
        header.marked ? &marks : nullptr);
    content.append(
        document_hash.digest(), elements - content.elements, source_bytes, source_words, marks);
    document_hash.reset();
  }

  void finish() {
    if (elements > content.elements) end_document(0, 0, {}, {});
    if (header.kind == Kind::pairs && content.documents % 2 != 0)
      core::bad_data("a pair without a target");
    if (!raw.empty()) push();
    frames.finish();
    layout::TrailerFrame trailer;
    trailer.content = content;
    trailer.marks = n_marks;
    trailer.fingerprint = fingerprint = shard::fingerprint(header, content);
    trailer.file_hash = file_hash.digest();
    trailer.names = documents.finish_names();
    trailer.boundaries = documents.finish();
    trailer.provenance = core::dump(core::OrderedJson(provenance));
    std::uint64_t offset = 0;
    for (const auto& frame : table) offset += frame.compressed;
    emit(layout::encode_trailer(trailer, offset), 0);
    sink.write(layout::encode_seek_table(table));
    finished = true;
  }

  core::ByteSink& sink;
  const Header header;
  std::vector<core::OrderedJson> provenance;
  const std::size_t element_bytes;
  core::Hasher file_hash, document_hash;
  std::vector<layout::FrameSize> table;
  DocumentsEncoder documents;
  Content content;
  std::uint64_t elements = 0, n_marks = 0;
  core::Bytes raw;
  core::Digest fingerprint;
  bool finished = false;
  core::InOrder<core::Bytes, Frame> frames;  // last, so that its threads end first
};

Writer::Writer(
    core::ByteSink& sink, Header header, std::vector<core::OrderedJson> provenance, int jobs) {
  check_header(header, "output");
  impl_ = std::make_unique<Impl>(sink, std::move(header), std::move(provenance), jobs);
}
Writer::~Writer() = default;

void Writer::write(std::span<const std::uint32_t> elements) {
  impl_->append_integers(elements);
  impl_->elements += elements.size();
}
void Writer::write(std::span<const std::uint64_t> elements) {
  impl_->append_integers(elements);
  impl_->elements += elements.size();
}
void Writer::write(std::span<const float> elements) {
  if (impl_->header.dtype != Dtype::f32)
    core::bug("floats written to a shard of {}", name_of(impl_->header.dtype));
  impl_->append<float>(elements);
  impl_->elements += elements.size();
}

void Writer::end_document(std::uint64_t source_bytes, std::uint64_t source_words,
    std::string_view name, const std::vector<Span>& marks) {
  impl_->end_document(source_bytes, source_words, name, marks);
}
void Writer::add_provenance(core::OrderedJson entry) {
  impl_->provenance.push_back(std::move(entry));
}
void Writer::finish() { impl_->finish(); }

core::Digest Writer::fingerprint() const {
  if (!impl_->finished) core::bug("fingerprint of an unfinished shard");
  return impl_->fingerprint;
}
std::uint64_t Writer::elements() const { return impl_->elements; }

}  // namespace shard
