/* The protocol of a link (src/net/rails/link.h): one direction of packets over two rails. A rail loses
 * nothing while its connection stands; it breaks at any moment, with what is on it in both directions,
 * comes back, or is silent for a while and then goes on.
 *
 * Checked: every packet goes up once, and the sender gets to know of each whatever breaks. (A packet is
 * kept until then: a link that never hears of one fills its window and stops.)
 *
 * Each transition is named after the function of Link that makes it, in one go: under its state_lock_.
 * Wrong protocols, which the checker must reject:
 *   FORGETS_OLD_CONNECTION  connect_again() does not mark what the old connection had
 *   TELLS_FULL_RAILS        an acknowledgement counts as told though no rail had room for it
 *   TELLS_ONCE              lose_rail() does not owe the last acknowledgement again
 *   HAS_NO_WINDOW           the receiver takes what it has had before
 */
#define PACKETS 3
#define WINDOW 2   /* kLinkWindow */
#ifndef BREAKS
#define BREAKS 2   /* of connections, in all */
#endif
#define SILENCES 1 /* rails that are avoided though they work */

#define ROOM_data 2 /* A driver answers SendState::full when so many are on their way. */
#define ROOM_news 1
chan data[2] = [ROOM_data] of { byte };       /* LinkHeader::sequence */
chan news[2] = [ROOM_news] of { byte, bool }; /* LinkHeader::expected, LinkPacket::arrived (of the one after it) */
bool stands[2] = true;                /* The connection. Drivers take packets of a broken one, too. */
bool tell_sender[2], tell_receiver[2];       /* PacketSink::on_peer_lost is due. */
byte breaks = 0, silences = 0;

/* LinkRail::state of the sender; `reviving` is `suspect` here, of a connection that stands. */
bool s_up[2] = true, s_suspect[2];
byte first = 0, next = 0;             /* SendWindow */
bool came[PACKETS + 2], must_go[PACKETS + 2];             /* Sent::packet == nullptr, Sent::must_go; two more, never used */
byte by[PACKETS + 2];                           /* Sent::rail */

/* LinkRail::state of the receiver, to which a rail in doubt counts as up: alone it is used as well, and
 * beside another one an acknowledgement takes that, which is the case of no room. */
bool r_up[2] = true;
byte expected = 0, echo_rail = 0;     /* ReceiveWindow, Link::echo_rail_ */
bool arrived[PACKETS + 2], owes = false, has_come = false;
byte delivered[PACKETS + 2];

#define USABLE(r) (s_up[r] || (s_suspect[r] && !s_up[1 - (r)])) /* Link::choose() */
#define HAS_ROOM(c, r) (!stands[r] || len(c[r]) < ROOM_##c)
#define HAS_AGAIN (must_go[0] || must_go[1] || must_go[2])
#define AWAITED(p) ((p) < next && !came[p] && !must_go[p])

inline mark_missing(r) {
  if :: AWAITED(0) && by[0] == r -> must_go[0] = true :: else fi;
  if :: AWAITED(1) && by[1] == r -> must_go[1] = true :: else fi;
  if :: AWAITED(2) && by[2] == r -> must_go[2] = true :: else fi
}

inline put_data(r, p) {
  by[p] = r;
  if :: stands[r] -> data[r]!p :: else fi
}

inline take_one(p) { came[p] = true; must_go[p] = false; by[p] = 0 }

inline drain(c) {
  do :: len(c) > 0 -> c?_ :: else -> break od
}
inline drain_news(c) {
  do :: len(c) > 0 -> c?_, _ :: else -> break od
}

inline sender_of_rail(r) {
  if
  /* try_send(): the window has room, nothing is to be sent again, this rail takes it. */
  :: d_step { next < PACKETS && next - first < WINDOW && !HAS_AGAIN && USABLE(r) && HAS_ROOM(data, r) ->
       put_data(r, next); next++ }
  /* send_again(): the oldest first. */
  :: d_step { HAS_AGAIN && USABLE(r) && HAS_ROOM(data, r) ->
       if
       :: must_go[0] -> must_go[0] = false; put_data(r, 0)
       :: !must_go[0] && must_go[1] -> must_go[1] = false; put_data(r, 1)
       :: else -> must_go[2] = false; put_data(r, 2)
       fi }
  /* take_acks(), take_one() and SendWindow::trim(). */
  :: d_step { len(news[r]) > 0 -> news[r]?e, has_map;
       if
       :: e >= first && e <= next ->
          if :: e > 0 -> take_one(0) :: else fi;
          if :: e > 1 -> take_one(1) :: else fi;
          if :: e > 2 -> take_one(2) :: else fi;
          if :: has_map && e + 1 < next -> take_one(e + 1) :: else fi;
          do :: first < next && came[first] -> first++ :: else -> break od
       :: else /* Old news. */
       fi;
       e = 0; has_map = false }
  /* lose_rail() */
  :: d_step { tell_sender[r] ->
       tell_sender[r] = false; s_up[r] = false; s_suspect[r] = false; drain_news(news[r]); skip }
  /* find_missing(): what went by a rail that is down or suspected. */
  :: d_step { !s_up[r] && ((AWAITED(0) && by[0] == r) || (AWAITED(1) && by[1] == r) ||
                           (AWAITED(2) && by[2] == r)) && USABLE(1 - r) -> mark_missing(r) }
  /* find_missing(), suspect(): nothing was heard for long, and there is another rail. */
  :: d_step { silences < SILENCES && s_up[r] && s_up[1 - r] ->
       silences++; s_up[r] = false; s_suspect[r] = true; mark_missing(r) }
  /* hear(): it has answered a probe. */
  :: d_step { s_suspect[r] && stands[r] && !tell_sender[r] -> s_suspect[r] = false; s_up[r] = true }
  /* connect_again(): the connection stands again, after both drivers have told of the loss. It is up
   * once it has answered. */
  :: d_step { !s_up[r] && !s_suspect[r] && stands[r] && !tell_sender[r] ->
#ifndef FORGETS_OLD_CONNECTION
       mark_missing(r);
#endif
       s_suspect[r] = true }
  fi
}

active proctype sender() {
  byte e = 0;
  bool has_map = false;
end:
  do
  :: sender_of_rail(0)
  :: sender_of_rail(1)
  od
}

inline tell(r) {
  if :: stands[r] -> news[r]!expected, arrived[expected + 1] :: else fi;
  owes = false
}

inline receiver_of_rail(r) {
  if
  /* take(), take_data() and ReceiveWindow::take(). */
  :: d_step { len(data[r]) > 0 -> data[r]?p;
       echo_rail = r; owes = true; has_come = true;
       if
       :: p < expected || arrived[p] -> /* Arrival::twice */
#ifdef HAS_NO_WINDOW
          delivered[p]++;
          assert(delivered[p] == 1)
#endif
       :: else ->
          arrived[p] = true; delivered[p]++;
          assert(delivered[p] == 1);
          do :: expected < PACKETS && arrived[expected] -> expected++ :: else -> break od
       fi;
       p = 0 }
  /* lose_rail(), and owe_again(). */
  :: d_step { tell_receiver[r] ->
       tell_receiver[r] = false; r_up[r] = false; drain(data[r]);
#ifndef TELLS_ONCE
       owes = owes || has_come;
#endif
       skip }
  /* connect_again() */
  :: d_step { !r_up[r] && stands[r] && !tell_receiver[r] -> r_up[r] = true }
  fi
}

active proctype receiver() {
  byte p = 0;
end:
  do
  :: receiver_of_rail(0)
  :: receiver_of_rail(1)
  /* acknowledge(): by the rail of the last packet, or else by another one. */
  :: d_step { owes && r_up[echo_rail] && HAS_ROOM(news, echo_rail) -> tell(echo_rail) }
  :: d_step { owes && !(r_up[echo_rail] && HAS_ROOM(news, echo_rail)) && r_up[1 - echo_rail] &&
              HAS_ROOM(news, 1 - echo_rail) -> tell(1 - echo_rail) }
#ifdef TELLS_FULL_RAILS
  :: d_step { owes && !(r_up[0] && HAS_ROOM(news, 0)) && !(r_up[1] && HAS_ROOM(news, 1)) -> owes = false }
#endif
  od
}

inline fate_of_rail(r) {
  if
  :: d_step { breaks < BREAKS && stands[r] && (s_up[r] || s_suspect[r]) && r_up[r] ->
       breaks++; stands[r] = false; tell_sender[r] = true; tell_receiver[r] = true }
  /* Each side's driver tells of a loss before packets of the next connection come. */
  :: d_step { !stands[r] && !tell_sender[r] && !tell_receiver[r] && !s_up[r] && !s_suspect[r] && !r_up[r] ->
       stands[r] = true }
  fi
}

active proctype fate() {
end:
  do
  :: fate_of_rail(0)
  :: fate_of_rail(1)
  od
}

/* Nothing can happen any more: then all is done. */
active proctype judge() {
  timeout ->
    assert(next == PACKETS && first == PACKETS);
    assert(delivered[0] == 1 && delivered[1] == 1 && delivered[2] == 1 && !owes)
}
