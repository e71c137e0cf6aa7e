#include "proto/wire/file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::wire {
namespace {

// The first error of a parse.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& file) : file_(file) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", message);
  }

  const std::string& text() const { return text_; }

 private:
  const std::string file_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a directory; it must be a file"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // An empty file leaves nothing to insert, which the stream takes for a fault.
  if (file && file.peek() != std::ifstream::traits_type::eof()) {
    text << file.rdbuf();
  }
  if (!file.is_open() || file.bad() || text.fail()) {
    return absl::NotFoundError(absl::StrCat(path, " cannot be read"));
  }
  return text.str();
}

absl::Status ParseTextProto(const std::string& path, const std::string& text,
                            google::protobuf::Message& message) {
  FirstError error(path);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &message)) return absl::OkStatus();
  return absl::InvalidArgumentError(error.text());
}

absl::Status ReadTextProto(const std::string& path,
                           google::protobuf::Message& message) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTextProto(path, text, message);
}

}  // namespace rowhouse::wire
