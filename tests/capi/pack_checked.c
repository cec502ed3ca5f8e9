/* What becomes of pieces that are unpacked as others than were packed: with the setting pack_checks
 * all are told, without it some are not. As one rank, several, and mobile ranks that move meanwhile;
 * with a file as argument in a job where one node has the setting and the others have not. */
#include "sterna/pack.h"

#include "pack_checks.h"

enum { kMiddle = 600 }; /* Short as an EXPRESS piece, long as a CHEAPER one. */
static char first[kMiddle], second[kMiddle];

static void pack_many(sterna_packing* packing) {
  const int number = 7;
  const double value = 0.5;
  memset(first, '1', kMiddle);
  memset(second, '2', kMiddle);
  EXPECT(sterna_pack_begin(packing, NULL, to, 8) == STERNA_SUCCESS);
  EXPECT(sterna_pack_int(packing, &number, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack_double(packing, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack(packing, NULL, 0, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack(packing, first, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack(packing, second, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_pack_start_end(packing) == STERNA_SUCCESS);
}

/* What nobody hears of without the setting: short pieces that together have the same length, and
 * pieces of one length whose modes are exchanged. */
static void test_unchecked(void) {
  static char got[2][kMiddle];
  sterna_packing packing;
  sterna_unpacking unpacking;
  int number = 0;
  double value = 0;
  pack_many(&packing);
  EXPECT(sterna_unpack_begin(&unpacking, NULL, from, 8, NULL) == STERNA_SUCCESS);
  EXPECT(sterna_unpack_double(&unpacking, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack_int(&unpacking, &number, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack(&unpacking, got[0], kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack(&unpacking, got[1], kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
  EXPECT(value != 0.5 && number != 7 && got[0][0] == '2' && got[1][0] == '1');
  EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
}

/* With it each is told, and which it is; nothing was taken, so that the right one comes next. */
static void test_checked(void) {
  static char got[kMiddle + 1];
  sterna_packing packing;
  sterna_unpacking unpacking;
  int number = 0;
  double value = 0;
  pack_many(&packing);
  EXPECT(sterna_unpack_begin(&unpacking, NULL, from, 8, NULL) == STERNA_SUCCESS);
  wander();
  EXPECT(sterna_unpack_double(&unpacking, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(detail_has("piece 1 was packed as 4 bytes, SAFER, EXPRESS, and is unpacked as 8 bytes"));
  EXPECT(sterna_unpack_int(&unpacking, &number, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack_int(&unpacking, &number, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(detail_has("piece 2"));
  EXPECT(sterna_unpack_double(&unpacking, &value, 1, STERNA_PACK_CHEAPER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(detail_has("8 bytes, SAFER, EXPRESS, and is unpacked as 8 bytes, CHEAPER, EXPRESS"));
  EXPECT(sterna_unpack_double(&unpacking, &value, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(number == 7 && value == 0.5);
  EXPECT(sterna_unpack(&unpacking, got, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(detail_has("piece 3 was packed as 0 bytes"));
  EXPECT(sterna_unpack(&unpacking, NULL, 0, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_SUCCESS);
  wander();
  EXPECT(sterna_unpack(&unpacking, got, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_REFUSED);
  EXPECT(detail_has("piece 4 was packed as 600 bytes, LATER, EXPRESS"));
  EXPECT(sterna_unpack(&unpacking, got, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_EXPRESS) ==
         STERNA_SUCCESS);
  EXPECT(got[0] == '1');
  EXPECT(sterna_unpack(&unpacking, got, kMiddle + 1, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_REFUSED);
  EXPECT(detail_has("piece 5"));
  EXPECT(sterna_unpack(&unpacking, got, kMiddle, STERNA_PACK_LATER, STERNA_UNPACK_CHEAPER) ==
         STERNA_SUCCESS);
  EXPECT(sterna_unpack_int(&unpacking, &number, 1, STERNA_PACK_SAFER, STERNA_UNPACK_EXPRESS) ==
         STERNA_REFUSED);
  EXPECT(detail_has("more is unpacked than was packed"));
  EXPECT(sterna_unpack_end(&unpacking) == STERNA_SUCCESS);
  EXPECT(got[0] == '2' && got[kMiddle - 1] == '2');
  EXPECT(sterna_pack_end(&packing) == STERNA_SUCCESS);
}

int main(int argc, char** argv) {
  if (argc > 1) {
    choose_who_checks(argv[1]);
  }
  EXPECT(sterna_start(NULL) == STERNA_SUCCESS);
  join_ring();
  learn_of_checks();
  if (gets_checked) {
    test_checked();
  } else {
    test_unchecked();
  }
  meet();
  EXPECT(sterna_stop() == STERNA_SUCCESS);
  puts("No Errors");
  return 0;
}
