/* Settings, as `sterna info` shows them.
 *
 * A value comes from the built-in default, the configuration file, the environment (STERNA_<NAME>)
 * or the command line; the later wins.
 */
#ifndef STERNA_TUNE_H
#define STERNA_TUNE_H

#include <stddef.h>

#include "sterna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the value for a sterna_start to come, as the environment would. By the initial thread,
 * before there are others. Fails with BUSY (started), NOT_FOUND, INVALID_ARGUMENT (not a value
 * of this setting), OUT_OF_MEMORY. */
sterna_status sterna_setting_set(const char* name, const char* value) STERNA_NOEXCEPT;

/* The value as written, with a 0 byte, as much as fits. Any thread. Fails with NOT_FOUND,
 * TRUNCATED, INVALID_ARGUMENT; SYSTEM: the configuration file cannot be read. */
sterna_status sterna_setting_get(const char* name, char* buffer, size_t bytes) STERNA_NOEXCEPT;

/* Calls `visit` for every setting, in the order of `sterna info`; `source` is where the value comes
 * from. The texts are valid inside the visit. Any thread. Fails as get. */
typedef void (*sterna_setting_visit)(void* context, const char* name, const char* value,
                                     const char* source);
sterna_status sterna_setting_list(sterna_setting_visit visit, void* context) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_TUNE_H */
