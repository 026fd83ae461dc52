#include "text/learn/word_counts.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>

#include "core/in_order.h"
#include "text/tokenizer/gpt2_split.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

void count_plain(std::string_view text, WordCounts& counts) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    if (*p == ' ' || *p == '\n') {
      ++p;
      continue;
    }
    const char* const stop = plain_word_end(p, end);
    counts.add({p, static_cast<std::size_t>(stop - p)});
    p = stop;
  }
}

void count_gpt2(std::string_view text, WordCounts& counts) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* const stop = gpt2_pretoken_end_quick(p, end);
    counts.add({p, static_cast<std::size_t>(stop - p)});
    p = stop;
  }
}

}  // namespace

std::vector<std::uint32_t> WordCounts::by_count(std::uint64_t min_count) const {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](std::uint32_t i) { return counts_[i] < min_count; });
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : word(a) < word(b);
  });
  return order;
}

CutFunction cut_for(WordKind kind) { return kind == WordKind::gpt2 ? gpt2_cut : plain_word_cut; }

WordCounts count_words(DocumentReader& reader, WordKind kind, const std::string& field, int jobs,
                       const std::function<void(std::uint64_t)>& progress, BadLines bad,
                       LineFlaws* flaws) {
  struct Worker {
    Worker(const std::string& field, BadLines bad) : texts(field, bad) {}
    WordCounts counts;
    PartTexts texts;
  };
  struct Counted {
    std::uint64_t bytes = 0;
    LineFlaws flaws;
  };
  std::deque<Worker> workers;
  std::mutex mutex;
  core::work_in_order<Batch, Counted>(
      jobs, [&](Batch& batch) { return reader.next(batch); },
      [&]() -> std::function<void(Batch&, Counted&)> {
        const std::lock_guard lock(mutex);
        Worker* worker = &workers.emplace_back(field, bad);
        return [worker, kind](Batch& batch, Counted& done) {
          done.bytes = batch.source_bytes;
          done.flaws = worker->texts.each(batch, [&](const Batch::Part&, std::string_view text) {
            kind == WordKind::gpt2 ? count_gpt2(text, worker->counts)
                                   : count_plain(text, worker->counts);
          });
        };
      },
      [&](Counted& done) {
        if (flaws != nullptr) flaws->add(done.flaws);
        progress(done.bytes);
      });
  WordCounts total;
  for (auto& worker : workers) {
    if (total.size() == 0) {
      total = std::move(worker.counts);
    } else {
      total.add(worker.counts);
    }
  }
  return total;
}

}  // namespace text
