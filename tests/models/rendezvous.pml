/* One announced message between two ranks (src/net/send.cc, receive.cc, read.cc, head.cc, cancel.cc, lost.cc):
 * the receiver's node has it sent (`clear`), or reads it (`matched`); its first bytes may follow unasked (`head`),
 * then what is asked for is the rest, if they come in time; it may be taken back by its sender, the receive by its
 * receiver; and either node may end at any moment.
 *
 * Checked: each request ends, once, whatever comes; who is told that all went well, it did; a message is
 * received or taken back, never both; memory is read and written only while its owner waits.
 *
 * Each transition is what a function of TransportCore does under the lock of the rank, and is named after
 * it. Wrong protocols, which the checker must reject:
 *   ANSWERS_ALL_WITHDRAWALS  withdraw() answers though a receive was first
 *   POSTS_BLINDLY            receive() does not look for lost nodes once it has posted
 *   ENDS_WHEN_CLEARED        the sender's request ends with `clear`, before its bytes are copied
 *   FORGETS_WHAT_IS_CLEARED  lose_node() ends receives that were posted, but not those that were cleared
 *   COUNTS_ON_DROPPED_HEADS  expect_head() asks for the rest though the head came too early
 *   ENDS_BEFORE_THE_HEAD     a receive ends with the last byte of the rest, wherever the head is
 */
mtype:frame = { rendezvous, head, withdrawn, finish, clear, clear_rest, matched, taken_back };
mtype:request = { idle, pending, copying, posted, reading, cleared, ended };
mtype:fault = { nothing, none, cancelled, lost };

chan to_receiver = [4] of { mtype:frame };
chan to_sender = [2] of { mtype:frame };
bool sender_alive = true, receiver_alive = true;
bool receiver_is_lost = false, sender_is_lost = false; /* lose_node() has run at the other node. */

mtype:request send = idle, receive = idle;
mtype:fault send_fault = nothing, receive_fault = nothing;
bool announced = false; /* A Message in the receiver's Endpoint. */
bool must_look = false; /* receive() has posted and not yet looked for lost nodes. */
bool received = false, may_take_back = false, has_asked = false;
bool headed = false, head_sent = false; /* The announcement has a head; which is on its way. */
bool head_here = false;                 /* accept_head() has run. */
bool asked_rest = false;                /* By `clear`. */
bool takes_head = false, got_head = false, got_rest = false; /* Of the receive: expects it, has it. */

inline end_send(fault) { assert(send != ended); send = ended; send_fault = fault }
inline end_receive(fault) { assert(receive != ended); receive = ended; receive_fault = fault }
inline put(alive, wire, frame) { if :: alive -> wire!frame :: else fi }

/* match(), start_rendezvous(): reads, or clear_to_send(); to a node that is lost, fail_cleared(). */
inline match(kind) {
  if
  :: sender_is_lost -> end_receive(lost)
  :: !sender_is_lost && kind -> receive = reading
  :: else ->
     receive = cleared;
     if
#ifdef COUNTS_ON_DROPPED_HEADS
     :: headed -> asked_rest = true; takes_head = !head_here; put(sender_alive, to_sender, clear_rest)
#else
     :: headed && !head_here -> asked_rest = true; takes_head = true; put(sender_alive, to_sender, clear_rest)
#endif
     :: else -> put(sender_alive, to_sender, clear)
     fi
  fi
}

active proctype sender() {
  if :: may_take_back = true :: skip fi;
end:
  do
  /* send_remote() */
  :: d_step { sender_alive && send == idle ->
       if
       :: receiver_is_lost -> end_send(lost)
       :: else ->
          send = pending;
          if :: !may_take_back -> headed = true :: true fi;
          put(receiver_alive, to_receiver, rendezvous)
       fi }
  /* The rest of send_remote(), whatever came meanwhile: its caller has not returned. */
  :: d_step { sender_alive && headed && !head_sent -> head_sent = true; put(receiver_alive, to_receiver, head) }
  /* cancel_send() */
  :: d_step { sender_alive && send == pending && may_take_back && !has_asked ->
       has_asked = true; put(receiver_alive, to_receiver, withdrawn) }
  /* accept_answer() */
  :: d_step { sender_alive && !receiver_is_lost && (to_sender?[clear] || to_sender?[clear_rest]) ->
       if :: to_sender?clear :: to_sender?clear_rest fi;
       assert(send == pending);
#ifdef ENDS_WHEN_CLEARED
       send_fault = none; send = ended
#else
       send = copying
#endif
       }
  :: d_step { sender_alive && !receiver_is_lost && to_sender?[matched] -> to_sender?matched; end_send(none) }
  :: d_step { sender_alive && !receiver_is_lost && to_sender?[taken_back] -> to_sender?taken_back;
       end_send(cancelled) }
  /* step_direct(), then end_send(): into the memory of the receive, which waits for it. */
#ifdef ENDS_WHEN_CLEARED
  :: d_step { sender_alive && send_fault == none && receive == cleared && !received ->
#else
  :: d_step { sender_alive && send == copying && !receiver_is_lost ->
#endif
       assert(send == copying && (receive == cleared || !receiver_alive));
       put(receiver_alive, to_receiver, finish); end_send(none) }
  /* lose_node(): fail_requests(), and end_job(). */
  :: d_step { sender_alive && !receiver_alive && !receiver_is_lost ->
       receiver_is_lost = true;
       if :: send == pending || send == copying -> end_send(lost) :: else fi }
  od
}

active proctype receiver() {
  bool reads = false;
end:
  do
  /* How the message can go. */
  :: d_step { !reads && receive == idle && !announced && !headed -> reads = true }
  /* receive() */
  :: d_step { receiver_alive && receive == idle ->
       if
       :: announced -> announced = false; match(reads && !headed)
       :: else -> receive = posted; must_look = true
       fi }
  :: d_step { receiver_alive && must_look ->
       must_look = false;
#ifndef POSTS_BLINDLY
       if :: receive == posted && sender_is_lost -> end_receive(lost) :: else fi
#endif
       }
  /* cancel_receive() */
  :: d_step { receiver_alive && receive == posted && !must_look && send_fault == cancelled -> end_receive(cancelled) }
  /* accept_rendezvous() */
  :: d_step { receiver_alive && !sender_is_lost && to_receiver?[rendezvous] -> to_receiver?rendezvous;
       if
       :: receive == posted -> match(reads && !headed)
       :: else -> announced = true
       fi }
  /* accept_head() */
  :: d_step { receiver_alive && !sender_is_lost && to_receiver?[head] -> to_receiver?head;
       head_here = true;
       if
       :: takes_head && receive == cleared ->
          got_head = true;
          if :: got_rest -> received = true; end_receive(none) :: else fi
       :: else
       fi }
  /* withdraw() */
  :: d_step { receiver_alive && !sender_is_lost && to_receiver?[withdrawn] -> to_receiver?withdrawn;
       if
       :: announced -> announced = false; put(sender_alive, to_sender, taken_back)
       :: else ->
#ifdef ANSWERS_ALL_WITHDRAWALS
          put(sender_alive, to_sender, taken_back)
#endif
          skip
       fi }
  /* accept_answer(): finish_receive(), once all bytes are there. */
  :: d_step { receiver_alive && !sender_is_lost && to_receiver?[finish] -> to_receiver?finish;
       assert(receive == cleared);
       got_rest = true;
       if
#ifndef ENDS_BEFORE_THE_HEAD
       :: takes_head && !got_head
#endif
       :: else -> received = true; end_receive(none)
       fi }
  /* step_read(), finish_read(): the sender waits meanwhile, with its memory. */
  :: d_step { receiver_alive && receive == reading && sender_alive ->
       assert(send == pending); received = true; put(sender_alive, to_sender, matched); end_receive(none) }
  /* The same where the system forbids it. */
  :: d_step { receiver_alive && receive == reading && !sender_is_lost ->
       receive = cleared; put(sender_alive, to_sender, clear) }
  /* lose_node(), after all that came before: fail_posted(), fail_requests(), end_read(). */
  :: d_step { receiver_alive && !sender_alive && !sender_is_lost && len(to_receiver) == 0 ->
       sender_is_lost = true;
       if
       :: receive == posted || receive == reading -> end_receive(lost)
#ifndef FORGETS_WHAT_IS_CLEARED
       :: receive == cleared -> end_receive(lost)
#endif
       :: else
       fi }
  od
}

/* One of the nodes ends; of what it has sent the last may not arrive. */
active proctype fate() {
  if
  :: skip
  :: d_step { sender_alive = false; if :: len(to_receiver) == 4 -> to_receiver?_ :: else fi; skip }
  :: d_step { receiver_alive = false; skip }
  fi;
end:
  do
  :: d_step { !sender_alive && !sender_is_lost && len(to_receiver) > 0 -> to_receiver?_; skip }
  od
}

/* Nothing can happen any more: then all is done, and rightly. */
active proctype judge() {
  timeout ->
    assert(!sender_alive || send == ended || (send == pending && receiver_alive && announced));
    assert(!receiver_alive || receive == ended);
    assert(received == (receive_fault == none));
    assert(!received || !asked_rest || got_head);
    assert(send_fault != none || received || !receiver_alive || !sender_alive);
    assert(send_fault != cancelled || !received);
    assert(send_fault != lost || !receiver_alive);
    assert(receive_fault != lost || !sender_alive)
}
