/* Messages that are built and taken apart piece by piece.
 *
 * begin, pack as often as wanted, end; on the other side begin, unpack the same pieces with the
 * same modes in the same order, end. Messages do not describe themselves: that both sides agree is
 * the program's affair. Where they do not, nothing hangs and nothing is left behind, and calls fail
 * where more is unpacked than was packed, less, or a long piece (above 512 bytes, or 4096 of
 * EXPRESS) with another length. Nobody hears of short pieces that are cut otherwise, as an int and a
 * double against a double and an int, nor of modes that are exchanged: the bytes are others. With
 * the setting pack_checks of the sender each piece carries its length and its modes, and another
 * one is REFUSED and not taken; sterna_error_detail says which, and both. Each piece says what its memory may do meanwhile. After the packs of Madeleine (paper 002
 * §1.3, mad_modes.h). They never mix with other messages, and keep the order of their senders.
 * From any thread of a rank (kernel threads: as message.h says), of which one at a time uses a
 * packing or an unpacking; a mobile rank
 * may be moved inside calls that switch, and anywhere between them. NULL where there is something
 * to read or store: INVALID_ARGUMENT; NOT_STARTED. Calls that switch, and sterna_unpack, inside a
 * callback of a message: DEADLOCK.
 */
#ifndef STERNA_PACK_H
#define STERNA_PACK_H

#include <string.h>

#include "sterna/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the sender may do with the memory of a piece, once sterna_pack has returned. */
typedef enum sterna_pack_mode {
  STERNA_PACK_SAFER = 0,  /* Change it: the bytes are those of now. */
  STERNA_PACK_LATER = 1,  /* Change it until the end begins: the bytes are those of then. */
  STERNA_PACK_CHEAPER = 2 /* Leave it as it is until the end has come. */
} sterna_pack_mode;

/* When the receiver has a piece. */
typedef enum sterna_unpack_mode {
  STERNA_UNPACK_EXPRESS = 0, /* When sterna_unpack returns: it may say how to go on. */
  STERNA_UNPACK_CHEAPER = 1  /* When sterna_unpack_end returns. */
} sterna_unpack_mode;

typedef struct sterna_packing { /* Memory of the program, never copied, between begin and end. */
  uint64_t opaque[16];
} sterna_packing;
typedef struct sterna_unpacking { /* The same. */
  uint64_t opaque[16];
} sterna_unpacking;

/* Begins a message to `rank`. session: NULL for that without a name. Any number at a time. */
sterna_status sterna_pack_begin(sterna_packing* packing, sterna_session* session, uint32_t rank,
                                int32_t tag) STERNA_NOEXCEPT;
/* Adds a piece. Sends nothing, does not switch. OUT_OF_MEMORY: it was not added. REFUSED: there was
 * no begin, or the end has begun. */
sterna_status sterna_pack(sterna_packing* packing, const void* data, size_t bytes,
                          sterna_pack_mode mode, sterna_unpack_mode other) STERNA_NOEXCEPT;
/* Sends it; waits until all pieces may be changed, which for large ones is when they are received.
 * Switches. Fails with CLOSED, OUT_OF_MEMORY (a piece is lost), REFUSED; it has ended all the same.
 */
sterna_status sterna_pack_end(sterna_packing* packing) STERNA_NOEXCEPT;
/* The same in two: sends, then tells whether all pieces may be changed. *done 1: it has ended, the
 * status says how. sterna_pack_end waits for what was sent so. test switches. */
sterna_status sterna_pack_start_end(sterna_packing* packing) STERNA_NOEXCEPT;
sterna_status sterna_pack_test_end(sterna_packing* packing, int* done) STERNA_NOEXCEPT;
/* The message is not sent: the end without one. REFUSED: the end has begun. */
sterna_status sterna_pack_cancel(sterna_packing* packing) STERNA_NOEXCEPT;

/* *found is 1 if the beginning of a message that fits has come; `envelope` (may be NULL) then has
 * its source and tag (and no length). In vain it lets others run: switches. CLOSED: none has come,
 * and the rank that was named is gone. */
sterna_status sterna_unpack_probe(sterna_session* session, uint32_t rank, int32_t tag, int* found,
                                  sterna_envelope* envelope) STERNA_NOEXCEPT;
/* As sterna_message_probe_for: waits until the beginning of a message that fits has come, of whose
 * tag only the bits of `mask` count. sterna_unpack_begin then takes it by the source and the tag of
 * the envelope, if nobody else has. */
sterna_status sterna_unpack_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                      uint32_t mask, uint64_t timeout_ns,
                                      sterna_envelope* envelope) STERNA_NOEXCEPT;
/* Waits for a message that fits (also of STERNA_ANY_RANK, STERNA_ANY_TAG); `envelope` as above.
 * Switches. Fails with CLOSED, OUT_OF_MEMORY. */
sterna_status sterna_unpack_begin(sterna_unpacking* unpacking, sterna_session* session,
                                  uint32_t rank, int32_t tag,
                                  sterna_envelope* envelope) STERNA_NOEXCEPT;
/* The next piece. Of EXPRESS ones, and where the message is long, it switches. Fails with REFUSED
 * (there was no begin, or the message has no such piece, as far as that is seen: above), CLOSED, OUT_OF_MEMORY, TRUNCATED (the
 * piece is longer). */
sterna_status sterna_unpack(sterna_unpacking* unpacking, void* buffer, size_t bytes,
                            sterna_pack_mode other, sterna_unpack_mode mode) STERNA_NOEXCEPT;
/* Waits for the pieces that have not come. TRUNCATED: more was packed, and is dropped; else the
 * first fault of a piece that was not told before. Switches. It has ended whatever it returns. */
sterna_status sterna_unpack_end(sterna_unpacking* unpacking) STERNA_NOEXCEPT;

/* `count` values of a type: sterna_pack_int(&packing, &n, 1, mode, other)... Both sides have the
 * same types, as they run the same program. */
#define STERNA_PACK_OF_TYPE(name, type)                                                       \
  static inline sterna_status sterna_pack_##name(sterna_packing* packing, const type* values, \
                                                 size_t count, sterna_pack_mode mode,         \
                                                 sterna_unpack_mode other) STERNA_NOEXCEPT {  \
    return sterna_pack(packing, values, count * sizeof(type), mode, other);                   \
  }                                                                                           \
  static inline sterna_status sterna_unpack_##name(sterna_unpacking* unpacking, type* values, \
                                                   size_t count, sterna_pack_mode other,      \
                                                   sterna_unpack_mode mode) STERNA_NOEXCEPT { \
    return sterna_unpack(unpacking, values, count * sizeof(type), other, mode);               \
  }
STERNA_PACK_OF_TYPE(byte, unsigned char)
STERNA_PACK_OF_TYPE(short, short)
STERNA_PACK_OF_TYPE(int, int)
STERNA_PACK_OF_TYPE(long, long)
STERNA_PACK_OF_TYPE(float, float)
STERNA_PACK_OF_TYPE(double, double)
STERNA_PACK_OF_TYPE(pointer, void*)
#undef STERNA_PACK_OF_TYPE

/* A text with its length, which is that of now, whatever `mode` says of its bytes: two pieces.
 * OUT_OF_MEMORY: the length may be there without them, so cancel. */
sterna_status sterna_pack_string(sterna_packing* packing, const char* text, sterna_pack_mode mode,
                                 sterna_unpack_mode other) STERNA_NOEXCEPT;
/* *length (may be NULL) is that of the text, without the 0 byte that ends it. TRUNCATED: there is
 * no room for it, and it is still to be taken: by sterna_unpack, as *length + 1 bytes. */
sterna_status sterna_unpack_string(sterna_unpacking* unpacking, char* buffer, size_t bytes_max,
                                   size_t* length, sterna_pack_mode other,
                                   sterna_unpack_mode mode) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_PACK_H */
