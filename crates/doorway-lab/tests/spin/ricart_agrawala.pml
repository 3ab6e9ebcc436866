/* Ricart & Agrawala 1981, three nodes.
 *
 * With FOREVER the numbers go round. Their paper allows that from 2N-1 on: of two numbers that
 * meet, neither is N or more ahead of the other.
 *
 * Two ways to spoil it: HASTY replies to everyone at once, FORGETFUL never sends what it deferred.
 */

/* A request and a reply may follow each other on a link; more never do. */
#define ROOM 2
#ifdef FOREVER
#ifndef NUMBERS
#define NUMBERS 5
#endif
#endif
#include "group.pml"

byte highest[N], our[N], outstanding[N];
bool deferred[9];

/* Is number x ahead of number y, by less than half the circle? */
#define AHEAD(x, y) (x != y && (x + NUMBERS - y) % NUMBERS <= NUMBERS / 2)
/* Is our request older than theirs? The lower node wins a tie. */
#define OLDER(i, j, number) (AHEAD(number, our[i]) || (number == our[i] && i < j))

#ifdef HASTY
#define DEFER(i, j, number) false
#else
#define DEFER(i, j, number) \
    (phase[i] == INSIDE || (phase[i] == WAITING && OLDER(i, j, number)))
#endif

inline reply_deferred(i, j) {
    if
    :: deferred[cell(i, j)] ->
        deferred[cell(i, j)] = false;
#ifndef FORGETFUL
        link(i, j) ! REPLY(0)
#endif
    :: else
    fi
}

active [N] proctype Client() {
end: do
    :: phase[_pid] == OUTSIDE
    :: d_step {
        MAY_ASK(_pid) ->
        COUNT_ASK(_pid);
        phase[_pid] = WAITING;
        highest[_pid] = AFTER(highest[_pid]);
        our[_pid] = highest[_pid];
        outstanding[_pid] = N - 1;
        link(_pid, next(_pid)) ! REQUEST(our[_pid]);
        link(_pid, last(_pid)) ! REQUEST(our[_pid])
    }
    :: d_step {
        phase[_pid] == INSIDE ->
        phase[_pid] = OUTSIDE;
        our[_pid] = 0;
        reply_deferred(_pid, next(_pid));
        reply_deferred(_pid, last(_pid))
    }
    od
}

hidden byte number;

active [6] proctype Link() {
end: do
    :: d_step {
        link(SENDER, RECEIVER) ? REQUEST(number) ->
        if
        :: AHEAD(number, highest[RECEIVER]) -> highest[RECEIVER] = number
        :: else
        fi;
        if
        :: DEFER(RECEIVER, SENDER, number) -> deferred[cell(RECEIVER, SENDER)] = true
        :: else -> link(RECEIVER, SENDER) ! REPLY(0)
        fi
    }
    :: d_step {
        link(SENDER, RECEIVER) ? REPLY(_) ->
        outstanding[RECEIVER]--;
        if
        :: outstanding[RECEIVER] == 0 -> enter(RECEIVER)
        :: else
        fi
    }
    od
}
