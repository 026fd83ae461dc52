#include "passages/packing_units.h"

#include "core/parallel.h"
#include "passages/analysis.h"
#include "passages/passage_index.h"

namespace passages {
namespace {

constexpr std::uint64_t kPartTokens = std::uint64_t{1} << 16;  // fewer only where the data end

// Iterates over the units' element ranges.
class Extents {
 public:
  Extents(const shard::Dataset& data, const PackingUnit& unit) : data_(data), unit_(unit) {
    if (unit.name == "passage") passages_ = PassageCuts(data.documents().end, unit.length);
  }
  std::uint64_t count() const {
    if (unit_.name == "passage") return passages_.size();
    const auto documents = std::max<std::uint64_t>(data_.documents().size(), data_.size() > 0);
    if (unit_.name == "segment") return (data_.size() + unit_.length - 1) / unit_.length;
    return unit_.name == "pair" ? documents / 2 : documents;
  }
  std::uint64_t begin(std::uint64_t unit) const {
    if (unit_.name == "passage") return passages_.place(unit).begin;
    if (unit_.name == "segment") return unit * unit_.length;
    return document_end(unit_.name == "pair" ? 2 * unit : unit - 1);
  }
  std::uint64_t end(std::uint64_t unit) const {
    if (unit_.name == "passage") return passages_.place(unit).end;
    if (unit_.name == "segment") return std::min(data_.size(), (unit + 1) * unit_.length);
    return document_end(unit_.name == "pair" ? 2 * unit + 1 : unit);
  }

 private:
  // -1: the start of the data.
  std::uint64_t document_end(std::uint64_t document) const {
    const auto& ends = data_.documents().end;
    if (document == ~std::uint64_t{0}) return 0;
    return document < ends.size() ? ends[document] : data_.size();
  }
  const shard::Dataset& data_;
  const PackingUnit& unit_;
  PassageCuts passages_;
};

// Converts tokens to terms, one object per worker.
class UnitAnalyzer {
 public:
  UnitAnalyzer(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
      std::optional<std::uint32_t> end_of_document)
      : data_(data), decoder_(tokenizer), end_of_document_(end_of_document) {}

  void analyze(
      const Extents& extents, std::uint64_t first, std::uint64_t last, AnalyzedUnits& out) {
    out.strings.clear();
    out.lists.resize(last - first);
    ++part_;
    for (std::uint64_t unit = first; unit < last; ++unit) {
      terms_.clear();
      read(extents.begin(unit), extents.end(unit));
      analyzer_.analyze(text_, terms_);
      count(out.strings, out.lists[unit - first]);
    }
  }

 private:
  // A term's index in this part and in this unit.
  struct Place {
    std::uint64_t part = 0;
    std::uint32_t in_part = 0;
    std::uint32_t in_list = 0;  // index of its entry, verified against the list itself
  };

  void read(std::uint64_t begin, std::uint64_t end) {
    text_.clear();
    decoder_.restart();
    ids_.resize(end - begin);
    data_.read(begin, std::span(ids_));
    for (const auto id : ids_)
      if (id != end_of_document_) decoder_.push(id, text_);
  }

  void count(std::vector<std::string>& strings, std::vector<TermCount>& list) {
    list.clear();
    places_.resize(analyzer_.size());
    for (const auto term : terms_) {
      Place& place = places_[term];
      if (place.part != part_) {
        place = {part_, static_cast<std::uint32_t>(strings.size()), 0};
        strings.push_back(analyzer_.term(term));
      }
      if (place.in_list < list.size() && list[place.in_list].term == place.in_part) {
        ++list[place.in_list].count;
      } else {
        place.in_list = static_cast<std::uint32_t>(list.size());
        list.push_back({place.in_part, 1});
      }
    }
  }

  const shard::Dataset& data_;
  text::StreamDecoder decoder_;
  std::optional<std::uint32_t> end_of_document_;
  Analyzer analyzer_;
  std::vector<std::uint32_t> ids_, terms_;
  std::string text_;
  std::vector<Place> places_;
  std::uint64_t part_ = 0;
};

}  // namespace

void expect_units(const shard::Dataset& data, const PackingUnit& unit) {
  const auto kind = data.header().kind;
  shard::expect_kind(data.header(), {shard::Kind::tokens, shard::Kind::pairs}, data.name());
  if ((kind == shard::Kind::pairs) != (unit.name == "pair"))
    core::bad_usage("{}: contains {}, not {}s; use --unit {}", data.name(), name_of(kind),
        unit.name, kind == shard::Kind::pairs ? "pair" : "segment");
}

std::uint64_t count_units(const shard::Dataset& data, const PackingUnit& unit) {
  return Extents(data, unit).count();
}

std::vector<UnitRange> units_of_same_documents(
    const shard::Dataset& data, const PackingUnit& unit) {
  const Extents extents(data, unit);
  const auto& ends = data.documents().end;
  const auto n = static_cast<std::uint32_t>(extents.count());
  std::vector<UnitRange> same(n);
  for (std::uint32_t i = 0; i < n; ++i) same[i] = {i, i + 1};
  if (unit.name != "segment" && unit.name != "passage") return same;
  std::uint32_t first = 0;  // first unit that has a token of the document or of what follows
  std::uint64_t begin = 0;
  for (const auto end : ends) {
    if (end == begin) continue;
    while (extents.end(first) <= begin) ++first;
    std::uint32_t last = first + 1;
    while (last < n && extents.begin(last) < end) ++last;
    for (std::uint32_t i = first; i < last; ++i) {
      same[i].begin = std::min(same[i].begin, first);
      same[i].end = std::max(same[i].end, last);
    }
    begin = end;
  }
  return same;
}

void analyze_units(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    const std::function<void(AnalyzedUnits&)>& take) {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  const Extents extents(data, unit);
  const std::uint64_t n = extents.count();
  std::uint64_t next = 0;
  const auto read = [&](Range& range) {
    if (next == n) return false;
    range.first = next;
    const std::uint64_t begin = extents.begin(next);
    do { ++next; } while (next < n && extents.end(next) - begin <= kPartTokens);
    range.second = next;
    return true;
  };
  const auto make_work = [&] {
    auto worker = std::make_shared<UnitAnalyzer>(data, tokenizer, end_of_document);
    return [&, worker](Range& range, AnalyzedUnits& out) {
      worker->analyze(extents, range.first, range.second, out);
    };
  };
  core::work_in_order<Range, AnalyzedUnits>(jobs, read, make_work, take);
}

TermLists list_terms(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    std::uint64_t memory, const std::function<void(std::uint64_t)>& progress,
    std::vector<std::string>* strings) {
  TermLists lists(memory);
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> number_of;
  analyze_units(data, tokenizer, end_of_document, unit, jobs, [&](AnalyzedUnits& part) {
    number_of.clear();
    for (auto& term : part.strings)
      number_of.push_back(
          numbers.try_emplace(std::move(term), static_cast<std::uint32_t>(numbers.size()))
              .first->second);
    for (auto& list : part.lists) {
      for (auto& entry : list) entry.term = number_of[entry.term];
      lists.add(list);
    }
    progress(lists.size());
  });
  lists.finish();
  if (strings != nullptr) {
    strings->resize(numbers.size());
    while (!numbers.empty()) {
      auto node = numbers.extract(numbers.begin());
      (*strings)[node.mapped()] = std::move(node.key());
    }
  }
  return lists;
}

}  // namespace passages
