/* Suzuki & Kasami 1985 on a complete mesh, three nodes. Node 1 has the token at first.
 *
 * What the token carries is kept in one place, for there is one token. With FOREVER a client asks
 * again only when all that its node has sent has arrived: otherwise a link to a node that the
 * algorithm does not wait for could fill without end. Of a node's numbers only the latest and the
 * one before are then in use, so that three tell them apart.
 *
 * Two ways to spoil it: TWICE sends a token to the second in the queue too; LOWEST keeps no queue,
 * and the lowest other node that has asked comes first.
 */

#ifdef FOREVER
#define ROOM 2
#define NUMBERS 3
#define SETTLED(i) (empty(link(i, next(i))) && empty(link(i, last(i))))
#else
/* Nobody sends more to one other than a request and a token for each time that all ask. */
#define ROOM (4 * ASKS)
#define SETTLED(i) true
#endif
#include "group.pml"

/* RN of each node, and where the token is. */
byte heard[9];
bool holding[N] = { true, false, false };
/* LN and Q of the token. */
byte served[N];
chan queue = [N] of { byte };

hidden byte first;
hidden byte queued;

inline append(i, j) {
    queued = queue ?? [eval(j)];
    if
    :: i != j && heard[cell(i, j)] == AFTER(served[j]) && !queued -> queue ! j
    :: else
    fi
}

inline serve(i) {
#ifdef LOWEST
    do
    :: len(queue) > 0 -> queue ? first
    :: else -> break
    od;
    append(i, 0);
    append(i, 1);
    append(i, 2);
#else
    append(i, next(i));
    append(i, last(i));
#endif
    if
    :: len(queue) > 0 ->
        holding[i] = false;
        queue ? first;
        link(i, first) ! TOKEN(0);
#ifdef TWICE
        if
        :: len(queue) > 0 -> queue ? first; link(i, first) ! TOKEN(0)
        :: else
        fi
#endif
    :: else
    fi
}

active [N] proctype Client() {
end: do
    :: phase[_pid] == OUTSIDE
    :: d_step {
        MAY_ASK(_pid) && SETTLED(_pid) ->
        COUNT_ASK(_pid);
        if
        :: holding[_pid] -> enter(_pid)
        :: else ->
            phase[_pid] = WAITING;
            heard[cell(_pid, _pid)] = AFTER(heard[cell(_pid, _pid)]);
            link(_pid, next(_pid)) ! REQUEST(heard[cell(_pid, _pid)]);
            link(_pid, last(_pid)) ! REQUEST(heard[cell(_pid, _pid)])
        fi
    }
    :: d_step {
        phase[_pid] == INSIDE ->
        phase[_pid] = OUTSIDE;
        serve(_pid)
    }
    od
}

active [6] proctype Link() {
end: do
    /* The latest number of a node is its highest, since the links keep order. */
    :: d_step {
        link(SENDER, RECEIVER) ? REQUEST(heard[cell(RECEIVER, SENDER)]) ->
        if
        :: holding[RECEIVER] && phase[RECEIVER] == OUTSIDE -> serve(RECEIVER)
        :: else
        fi
    }
    :: d_step {
        link(SENDER, RECEIVER) ? TOKEN(_) ->
        holding[RECEIVER] = true;
        served[RECEIVER] = heard[cell(RECEIVER, RECEIVER)];
        enter(RECEIVER)
    }
    od
}
