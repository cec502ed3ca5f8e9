// Info objects: an ordered list of pairs of strings.
#include "mpi/info/info.h"

#include <cstring>

#include "mpi/any_time.h"

namespace sterna::mpi {
namespace {

InfoPair* create_pair(HeapUser& heap, const char* key, const char* value) noexcept {
  const std::size_t key_bytes = std::strlen(key) + 1;
  const std::size_t value_bytes = std::strlen(value) + 1;
  auto* block = static_cast<char*>(heap.allocate(sizeof(InfoPair) + key_bytes + value_bytes));
  if (block == nullptr) {
    return nullptr;
  }
  char* key_copy = block + sizeof(InfoPair);
  std::memcpy(key_copy, key, key_bytes);
  std::memcpy(key_copy + key_bytes, value, value_bytes);
  return ::new (block) InfoPair{nullptr, key_copy, key_copy + key_bytes};
}

}  // namespace

Info* create_info(HeapUser& heap) noexcept {
  return heap.create<Info>();
}

bool set_info(HeapUser& heap, Info& info, const char* key, const char* value) noexcept {
  InfoPair* pair = create_pair(heap, key, value);
  if (pair == nullptr) {
    return false;
  }
  InfoPair** link = &info.first;
  while (*link != nullptr && std::strcmp((*link)->key, key) != 0) {
    link = &(*link)->next;
  }
  if (*link != nullptr) {
    pair->next = (*link)->next;
    heap.deallocate(*link);
  }
  *link = pair;
  return true;
}

bool remove_info(HeapUser& heap, Info& info, const char* key) noexcept {
  for (InfoPair** link = &info.first; *link != nullptr; link = &(*link)->next) {
    InfoPair* pair = *link;
    if (std::strcmp(pair->key, key) == 0) {
      *link = pair->next;
      heap.deallocate(pair);
      return true;
    }
  }
  return false;
}

Info* copy_info(HeapUser& heap, const Info& from) noexcept {
  Info* copy = create_info(heap);
  if (copy == nullptr) {
    return nullptr;
  }
  for (const InfoPair* pair = from.first; pair != nullptr; pair = pair->next) {
    if (!set_info(heap, *copy, pair->key, pair->value)) {
      destroy_info(heap, copy);
      return nullptr;
    }
  }
  return copy;
}

void destroy_info(HeapUser& heap, Info* info) noexcept {
  if (info == nullptr) {
    return;
  }
  while (info->first != nullptr) {
    InfoPair* pair = info->first;
    info->first = pair->next;
    heap.deallocate(pair);
  }
  info->kind = ObjectKind::freed;
  heap.destroy(info);
}

const char* get_info(const Info& info, const char* key) noexcept {
  for (const InfoPair* pair = info.first; pair != nullptr; pair = pair->next) {
    if (std::strcmp(pair->key, key) == 0) {
      return pair->value;
    }
  }
  return nullptr;
}

Info* find_info(MPI_Info handle) noexcept {
  if (handle == MPI_INFO_ENV) {
    AnyTime& its = any_time();
    const SpinGuard guard{its.lock};
    if (its.info_env == nullptr) {
      its.info_env = create_info(its);
    }
    return its.info_env;
  }
  return is_object(handle, ObjectKind::info) ? reinterpret_cast<Info*>(handle) : nullptr;
}

}  // namespace sterna::mpi
