// libtessera_parquet.so: reads texts of Parquet files with Apache Arrow. It is loaded only when a
// Parquet file is read. No other code uses Arrow.

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "text/documents/parquet_reader.h"

namespace text {
namespace {

constexpr std::int64_t kRows = 256;           // most rows decoded at once
constexpr std::size_t kPieceBytes = 1 << 20;  // handed on at once, unless one text is longer
constexpr std::size_t kWaiting = 64;          // most pieces waiting per thread
constexpr int kNamed = 20;                    // most columns that an error lists
constexpr std::int64_t kBuffer = 1 << 16;     // buffer of a streamed column, in bytes

// Counts Arrow's memory and refuses more than a limit.
class BoundedPool : public arrow::MemoryPool {
 public:
  // `named`: the limit of the message.
  BoundedPool(std::int64_t most, std::uint64_t named)
      : most_(most), named_(named), pool_(arrow::system_memory_pool()) {}
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(expect(size));
    return pool_->Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(
      std::int64_t before, std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
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
    return arrow::Status::OutOfMemory(
        "decoding needs more than --decode-memory ", named_, "; raise it");
  }
  const std::int64_t most_;
  const std::uint64_t named_;
  arrow::MemoryPool* pool_;
  std::atomic<std::int64_t> held_ = 0;
};

struct Texts {
  std::string bytes;
  std::vector<std::size_t> ends;
};

template <class T> T value(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}

// Returns what a column holds that is not text.
std::string name_of(const parquet::schema::Node& node) {
  if (!node.is_primitive() || node.is_repeated()) return "lists or structures";
  const auto type = static_cast<const parquet::schema::PrimitiveNode&>(node).physical_type();
  if (type == parquet::Type::BYTE_ARRAY) return "binary";
  std::string name = parquet::TypeToString(type);
  std::ranges::transform(name, name.begin(),
      [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  return name;
}

bool holds_texts(const parquet::schema::Node& node) {
  if (!node.is_primitive() || node.is_repeated()) return false;
  const auto& type = *node.logical_type();
  return static_cast<const parquet::schema::PrimitiveNode&>(node).physical_type() ==
             parquet::Type::BYTE_ARRAY &&
         (type.is_string() || type.is_JSON() || type.is_enum());
}

// Some rows of a column. The texts are views of its page or dictionary.
class Rows {
 public:
  // Decodes the next rows of a page. Their number is such that texts as long as the last ones
  // come to kPieceBytes, because some encodings copy all texts.
  void read(parquet::ByteArrayReader& column) {
    std::int64_t found = 0;
    const bool optional = column.descr()->max_definition_level() > 0;
    size_ = column.ReadBatch(
        most_, optional ? levels_.data() : nullptr, nullptr, values_.data(), &found);
    if (!optional) std::fill_n(levels_.begin(), size_, 1);
    if (size_ == 0 || std::count(levels_.begin(), levels_.begin() + size_, 1) != found)
      throw std::runtime_error("damaged: a page has fewer rows than it says");
    row_ = value_ = 0;
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < found; ++i) bytes += values_[static_cast<std::size_t>(i)].len;
    const auto fit =
        static_cast<std::int64_t>(kPieceBytes / (bytes / static_cast<std::size_t>(size_) + 1));
    most_ = std::clamp<std::int64_t>(fit, 1, std::min(2 * most_, kRows));
  }
  bool done() const { return row_ == size_; }

  // Returns the bytes of the next piece, which add_piece() takes.
  std::size_t piece_bytes() {
    std::size_t bytes = 0, value = value_;
    for (end_ = row_; end_ < size_; ++end_) {
      const std::size_t more = is_text(end_) ? values_[value++].len : 0;
      if (bytes > 0 && bytes + more > kPieceBytes) break;
      bytes += more;
    }
    return bytes;
  }
  void add_piece(Texts& texts) {
    for (; row_ < end_; ++row_) {
      if (is_text(row_)) {
        const auto& text = values_[value_++];
        texts.bytes.append(reinterpret_cast<const char*>(text.ptr), text.len);
      }
      texts.ends.push_back(is_text(row_) ? texts.bytes.size() : ParquetTexts::kNone);
    }
  }

 private:
  bool is_text(std::int64_t row) const { return levels_[static_cast<std::size_t>(row)] == 1; }
  std::array<std::int16_t, kRows> levels_;  // 1: the row has a text
  std::array<parquet::ByteArray, kRows> values_;
  std::int64_t most_ = 1, size_ = 0, row_ = 0, end_ = 0;
  std::size_t value_ = 0;  // of row_
};

// Thread g % threads decodes row group g. The groups are returned in order. A quarter of the memory
// is for texts that wait; the thread of the current group may exceed it by one text.
class Column : public ParquetTexts {
 public:
  explicit Column(const ParquetRequest& request)
      : waiting_most_(request.memory / 4),
        pool_(static_cast<std::int64_t>(request.memory - waiting_most_), request.memory) {
    file_ = value(arrow::io::ReadableFile::Open(request.path, &pool_));
    const auto first = reader();
    metadata_ = first->metadata();
    groups_ = metadata_->num_row_groups();
    find(request.column);
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
      if (batch) waiting_ -= batch->bytes.size();
      else ++group_;
      changed_.notify_all();
      if (!batch) continue;
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

  std::unique_ptr<parquet::ParquetFileReader> reader() {
    parquet::ReaderProperties properties(&pool_);
    properties.enable_buffered_stream();
    properties.set_buffer_size(kBuffer);
    return parquet::ParquetFileReader::Open(file_, properties, metadata_);
  }

  void find(const std::string& column) {
    const auto& schema = *metadata_->schema();
    const auto& root = *schema.group_node();
    std::string names;
    for (int i = 0; i < root.field_count(); ++i) {
      const auto& field = *root.field(i);
      if (i <= kNamed) names += (i == 0 ? "" : ", ") + (i < kNamed ? field.name() : "...");
      if (field.name() != column) continue;
      if (!holds_texts(field))
        throw std::runtime_error(
            "column " + column + " does not contain texts, but " + name_of(field));
      column_ = schema.ColumnIndex(field);
      return;
    }
    throw std::runtime_error("no column " + column + "; give --column, one of: " + names);
  }

  void decode(std::size_t number) {
    try {
      const auto own = reader();
      for (int group = static_cast<int>(number); group < groups_;
           group += static_cast<int>(lanes_.size())) {
        const auto column = own->RowGroup(group)->Column(column_);
        Rows rows;
        while (column->HasNext()) {
          for (rows.read(static_cast<parquet::ByteArrayReader&>(*column)); !rows.done();) {
            const std::size_t bytes = rows.piece_bytes();
            if (!wait_for_room(number, group, bytes)) return;
            Texts texts;
            texts.bytes.reserve(bytes);
            rows.add_piece(texts);
            put(number, std::move(texts));
          }
        }
        put(number, std::nullopt);
      }
      return;
    } catch (const parquet::ParquetStatusException& error) {
      refuse(error.status().message());
    } catch (const std::exception& error) { refuse(error.what()); }
  }

  void refuse(const std::string& error) {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = error.empty() ? "damaged" : error;
    changed_.notify_all();
  }

  // Returns false if the consumer has gone.
  bool wait_for_room(std::size_t number, int group, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    const auto& own = lanes_[number].batches;
    changed_.wait(lock, [&] {
      return ends_ || (own.size() < kWaiting && waiting_ + bytes <= waiting_most_) ||
             (own.empty() && group == group_);
    });
    waiting_ += bytes;
    return !ends_;
  }
  void put(std::size_t number, std::optional<Texts> texts) {
    const std::lock_guard lock(mutex_);
    lanes_[number].batches.push_back(std::move(texts));
    changed_.notify_all();
  }

  std::size_t waiting_ = 0;  // bytes of the texts in lanes_
  const std::size_t waiting_most_;
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
