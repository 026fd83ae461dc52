// libtessera_parquet.so: reads texts of Parquet files with Apache Arrow. It is loaded only when a
// Parquet file is read. No other code uses Arrow.

#include <arrow/array.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "text/documents/parquet_texts.h"

namespace text {
namespace {

constexpr std::int64_t kRows = 256;        // rows per batch
constexpr std::size_t kWaiting = 2;        // most batches waiting per thread
constexpr std::int64_t kBuffer = 1 << 16;  // buffer of a streamed column, in bytes

// Counts Arrow's memory and refuses more than a limit.
class BoundedPool : public arrow::MemoryPool {
 public:
  explicit BoundedPool(std::int64_t most) : most_(most), pool_(arrow::system_memory_pool()) {}
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(expect(size));
    return pool_->Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(std::int64_t before, std::int64_t size, std::int64_t alignment,
                           std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(expect(size - before));
    return pool_->Reallocate(before, size, alignment, out);
  }
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override {
    held_ -= size;
    pool_->Free(buffer, size, alignment);
  }
  std::int64_t bytes_allocated() const override { return held_; }
  std::int64_t max_memory() const override { return most_; }
  std::int64_t total_bytes_allocated() const override { return pool_->total_bytes_allocated(); }
  std::int64_t num_allocations() const override { return pool_->num_allocations(); }
  std::string backend_name() const override { return pool_->backend_name(); }

 private:
  arrow::Status expect(std::int64_t more) {
    if ((held_ += more) <= most_) return arrow::Status::OK();
    held_ -= more;
    return arrow::Status::OutOfMemory("decoding needs more than --decode-memory ", most_);
  }
  const std::int64_t most_;
  arrow::MemoryPool* pool_;
  std::atomic<std::int64_t> held_ = 0;
};

struct Texts {
  std::string bytes;
  std::vector<std::size_t> ends;
};

void expect(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <class T>
T value(arrow::Result<T> result) {
  expect(result.status());
  return std::move(result).ValueUnsafe();
}

template <class Array>
void add(const arrow::Array& array, Texts& texts) {
  const auto& typed = static_cast<const Array&>(array);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    if (typed.IsNull(i)) {
      texts.ends.push_back(ParquetTexts::kNone);
      continue;
    }
    texts.bytes += typed.GetView(i);
    texts.ends.push_back(texts.bytes.size());
  }
}

void add_dictionary(const arrow::Array& array, Texts& texts) {
  const auto& typed = static_cast<const arrow::DictionaryArray&>(array);
  Texts words;
  add<arrow::StringArray>(*typed.dictionary(), words);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    const auto at = typed.IsNull(i) ? 0 : static_cast<std::size_t>(typed.GetValueIndex(i));
    if (typed.IsNull(i) || at >= words.ends.size() || words.ends[at] == ParquetTexts::kNone) {
      texts.ends.push_back(ParquetTexts::kNone);
      continue;
    }
    const std::size_t begin = at == 0 ? 0 : words.ends[at - 1];
    texts.bytes.append(words.bytes, begin, words.ends[at] - begin);
    texts.ends.push_back(texts.bytes.size());
  }
}

void add_texts(const arrow::Array& array, Texts& texts) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return add<arrow::StringArray>(array, texts);
    case arrow::Type::LARGE_STRING:
      return add<arrow::LargeStringArray>(array, texts);
    case arrow::Type::STRING_VIEW:
      return add<arrow::StringViewArray>(array, texts);
    case arrow::Type::DICTIONARY:
      return add_dictionary(array, texts);
    default:
      throw std::runtime_error("the column does not contain texts");
  }
}

bool holds_texts(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return true;
    case arrow::Type::DICTIONARY:
      return static_cast<const arrow::DictionaryType&>(type).value_type()->id() ==
             arrow::Type::STRING;
    default:
      return false;
  }
}

// Thread g % threads decodes row group g. The groups are returned in order.
class Column : public ParquetTexts {
 public:
  explicit Column(const ParquetRequest& request)
      : pool_(static_cast<std::int64_t>(request.memory)) {
    file_ = value(arrow::io::ReadableFile::Open(request.path, &pool_));
    const auto first = reader();
    groups_ = first->num_row_groups();
    find(*first, request.column);
    lanes_.resize(static_cast<std::size_t>(std::max(1, std::min(request.threads, groups_))));
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i].thread = std::thread([this, i] { decode(i); });
  }
  ~Column() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (auto& lane : lanes_)
      if (lane.thread.joinable()) lane.thread.join();
  }

  bool next(std::string& bytes, std::vector<std::size_t>& ends, std::string& error) override {
    std::unique_lock lock(mutex_);
    while (group_ < groups_) {
      Lane& lane = lanes_[static_cast<std::size_t>(group_) % lanes_.size()];
      changed_.wait(lock, [&] { return !lane.batches.empty() || !error_.empty(); });
      if (!error_.empty()) {
        error = error_;
        return false;
      }
      auto batch = std::move(lane.batches.front());
      lane.batches.pop_front();
      changed_.notify_all();
      if (!batch) {
        ++group_;
        continue;
      }
      const std::size_t before = bytes.size();
      bytes += batch->bytes;
      for (const auto end : batch->ends) ends.push_back(end == kNone ? kNone : before + end);
      return true;
    }
    return false;
  }

 private:
  struct Lane {
    std::thread thread;
    std::deque<std::optional<Texts>> batches;  // nothing: the end of a row group
  };

  std::unique_ptr<parquet::arrow::FileReader> reader() {
    parquet::ReaderProperties parquet_properties(&pool_);
    parquet_properties.enable_buffered_stream();
    parquet_properties.set_buffer_size(kBuffer);
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(kRows);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    expect(builder.Open(file_, parquet_properties, metadata_));
    metadata_ = builder.raw_reader()->metadata();
    builder.memory_pool(&pool_)->properties(arrow_properties);
    std::unique_ptr<parquet::arrow::FileReader> made;
    expect(builder.Build(&made));
    return made;
  }

  void find(const parquet::arrow::FileReader& reader, const std::string& column) {
    std::string names;
    for (const auto& field : reader.manifest().schema_fields) {
      const auto& name = field.field->name();
      names += (names.empty() ? "" : ", ") + name;
      if (name != column) continue;
      if (!field.is_leaf() || !holds_texts(*field.field->type()))
        throw std::runtime_error("column " + column + " does not contain texts, but " +
                                 field.field->type()->ToString());
      column_ = field.column_index;
      return;
    }
    throw std::runtime_error("no column " + column + "; give --column, one of: " + names);
  }

  void decode(std::size_t number) {
    try {
      const auto own = reader();
      for (int group = static_cast<int>(number); group < groups_;
           group += static_cast<int>(lanes_.size())) {
        auto batches = value(own->GetRecordBatchReader({group}, {column_}));
        std::shared_ptr<arrow::RecordBatch> batch;
        for (;;) {
          expect(batches->ReadNext(&batch));
          if (batch == nullptr) break;
          Texts texts;
          add_texts(*batch->column(0), texts);
          if (!put(lanes_[number], std::move(texts))) return;
        }
        if (!put(lanes_[number], std::nullopt)) return;
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (error_.empty()) error_ = error.what();
      if (error_.empty()) error_ = "damaged";
    }
    changed_.notify_all();
  }

  // Returns false if the consumer has gone.
  bool put(Lane& lane, std::optional<Texts> texts) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lane.batches.size() < kWaiting || ends_; });
    if (ends_) return false;
    lane.batches.push_back(std::move(texts));
    changed_.notify_all();
    return true;
  }

  BoundedPool pool_;
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  int groups_ = 0, group_ = 0, column_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Lane> lanes_;
  std::string error_;
  bool ends_ = false;
};

ParquetTexts* open(const ParquetRequest& request, std::string& error) {
  try {
    return new Column(request);
  } catch (const std::exception& what) {
    error = what.what();
    return nullptr;
  }
}

}  // namespace
}  // namespace text

extern "C" __attribute__((visibility("default"))) const text::ParquetLibrary* tessera_parquet() {
  static const text::ParquetLibrary library{TESSERA_VERSION, &text::open};
  return &library;
}
