#include "kernels/cpu/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::kernels::cpu {
namespace {

// What a handle is: which file of which process. Device and inode tell whether
// it is still the same one.
struct FileName {
  std::array<char, 8> magic{'r', 'o', 'w', 'm', 'e', 'm', 'f', '1'};
  int64_t process = 0;
  int64_t file = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
};

void Unmap(void* /*owner*/, void* data, int64_t size_bytes) {
  munmap(data, static_cast<size_t>(size_bytes));
}

absl::Status NoMemory(int64_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot allocate ", size_bytes,
                   " bytes of shared memory: ", std::strerror(errno)));
}

absl::Status NotReached(const std::string& path, const char* why) {
  return absl::NotFoundError(
      absl::StrCat("the memory file ", path, " cannot be reached: ", why));
}

absl::StatusOr<FileName> Parse(const SharedMemory& memory) {
  FileName name;
  const auto magic = name.magic;
  if (memory.handle.size() == sizeof(name)) {
    std::memcpy(&name, memory.handle.data(), sizeof(name));
  }
  if (memory.handle.size() != sizeof(name) || name.magic != magic) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a handle of ", memory.handle.size(), " bytes names no memory file"));
  }
  if (memory.offset_bytes != 0 || memory.size_bytes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        memory.size_bytes, " bytes from byte ", memory.offset_bytes,
        " on of a memory file, wanted it whole"));
  }
  return name;
}

// Maps `file` and gives the memory to `free`; null where the system refuses.
void* MapFile(int file, int64_t size_bytes, int protection) {
  void* const data = mmap(nullptr, static_cast<size_t>(size_bytes), protection,
                          MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return nullptr;
  // Advice only: without huge pages everything works, slower.
  (void)madvise(data, static_cast<size_t>(size_bytes), MADV_HUGEPAGE);
  return data;
}

}  // namespace

absl::StatusOr<Buffer> SharedMemoryFiles::Allocate(int64_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  const int file = memfd_create("rowhouse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Its size is sealed: nobody can take pages from under the others.
  if (file < 0 || ftruncate(file, size_bytes) != 0 ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
          0) {
    absl::Status refused = NoMemory(size_bytes);
    if (file >= 0) close(file);
    return refused;
  }
  void* const data = MapFile(file, size_bytes, PROT_READ | PROT_WRITE);
  if (data == nullptr) {
    absl::Status refused = NoMemory(size_bytes);
    close(file);
    return refused;
  }
  MutexLock lock(mutex_);
  files_[data] = file;
  return Buffer(data, size_bytes, &Free, this);
}

void SharedMemoryFiles::Free(void* files, void* data, int64_t size_bytes) {
  auto& self = *static_cast<SharedMemoryFiles*>(files);
  {
    MutexLock lock(self.mutex_);
    const auto found = self.files_.find(data);
    close(found->second);
    self.files_.erase(found);
  }
  Unmap(nullptr, data, size_bytes);
}

absl::StatusOr<SharedMemory> SharedMemoryFiles::Name(
    const Buffer& buffer) const {
  FileName name;
  {
    MutexLock lock(mutex_);
    const auto found = files_.find(buffer.data());
    if (found == files_.end()) {
      return absl::InternalError("the memory was not allocated to be shared");
    }
    name.file = found->second;
  }
  struct stat about = {};
  if (fstat(static_cast<int>(name.file), &about) != 0) {
    return absl::InternalError(
        absl::StrCat("asking for a memory file: ", std::strerror(errno)));
  }
  name.process = getpid();
  name.device = about.st_dev;
  name.inode = about.st_ino;
  return SharedMemory{
      std::string(reinterpret_cast<const char*>(&name), sizeof(name)), 0,
      buffer.size_bytes()};
}

absl::StatusOr<Buffer> MapSharedMemory(const SharedMemory& memory,
                                       MapAccess access) {
  const absl::StatusOr<FileName> name = Parse(memory);
  if (!name.ok()) return name.status();
  const std::string path =
      absl::StrCat("/proc/", name->process, "/fd/", name->file);
  const bool write = access == MapAccess::kWrite;
  // What is named may be anything, a pipe or a terminal too.
  const int file = open(path.c_str(), (write ? O_RDWR : O_RDONLY) | O_CLOEXEC |
                                          O_NOCTTY | O_NONBLOCK);
  if (file < 0) return NotReached(path, std::strerror(errno));
  struct stat about = {};
  const bool same = fstat(file, &about) == 0 && about.st_dev == name->device &&
                    about.st_ino == name->inode;
  if (!same || about.st_size < memory.size_bytes) {
    close(file);
    return NotReached(
        path, same ? "it is smaller than its name says" : "it is another file");
  }
  void* const data = MapFile(file, memory.size_bytes,
                             write ? PROT_READ | PROT_WRITE : PROT_READ);
  const int error = errno;
  close(file);
  if (data == nullptr) return NotReached(path, std::strerror(error));
  return Buffer(data, memory.size_bytes, &Unmap);
}

void StoreEpoch(int64_t* epoch, int64_t value) {
  __atomic_store_n(epoch, value, __ATOMIC_RELAXED);
  // Also before stores that go past the caches.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

int64_t LoadEpoch(const int64_t* epoch) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return __atomic_load_n(epoch, __ATOMIC_RELAXED);
}

}  // namespace rowhouse::kernels::cpu
