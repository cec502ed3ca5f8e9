// What context_test.cc calls, in code for AVX-512: it may keep values in registers that other code
// does not know. Compiled with -mavx512f; so it includes nothing that has inline functions, which
// the linker could take for the rest of the program too.
#if defined(__AVX512F__)

#include <immintrin.h>

#include "threads/context/context.h"

using sterna::threads::SavedContext;
using sterna::threads::switch_context;

/// Adds 24 vectors of 8, of those lanes where the first is less than the second, over a switch.
extern "C" void sterna_test_add_over_switch(SavedContext& from, SavedContext& to,
                                            const double* values, double* sums) {
  __m512d vectors[24];
  for (int i = 0; i < 24; ++i) {
    vectors[i] = _mm512_loadu_pd(values + 8 * i);
  }
  const __mmask8 lanes = _mm512_cmp_pd_mask(vectors[0], vectors[1], _CMP_LT_OQ);
  (void)switch_context(from, to, nullptr);
  __m512d sum = vectors[0];
  for (int i = 1; i < 24; ++i) {
    sum = _mm512_mask_add_pd(sum, lanes, sum, vectors[i]);
  }
  _mm512_storeu_pd(sums, sum);
}

/// Writes all that is new in AVX-512.
extern "C" void sterna_test_spoil_wide_registers() {
  asm volatile(
      ".irp n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
      "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
      ".endr\n\t"
      ".irp n, 0,1,2,3,4,5,6,7\n\t"
      "kxorw %%k\\n, %%k\\n, %%k\\n\n\t"
      ".endr" ::
          : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
            "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3",
            "k4", "k5", "k6", "k7");
}

#endif
