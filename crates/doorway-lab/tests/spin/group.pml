/* Three nodes, their clients and their links: what both models stand on.
 *
 * One step here is one step of a world: a client asks, a client leaves, or the first message of a
 * link arrives, each with all that its node does about it (`d_step`). So the states can be counted
 * against the worlds of the checker.
 *
 * ASKS=k lets each client ask k times. FOREVER lets all ask again and again; numbers then go round
 * in a circle of NUMBERS, so that there are finitely many states.
 *
 * Fairness is that of processes. Each client and each link is one, so a message that has been sent
 * arrives and a client that is inside leaves; but a client that is outside may stay there.
 */

#define N 3

#define OUTSIDE 0
#define WAITING 1
#define INSIDE  2

#ifdef FOREVER
#define MAY_ASK(i) (phase[i] == OUTSIDE)
#define COUNT_ASK(i) skip
#else
#define MAY_ASK(i) (phase[i] == OUTSIDE && asks[i] > 0)
#define COUNT_ASK(i) asks[i]--
#define NUMBERS 256
byte asks[N] = ASKS;
#endif

byte phase[N];

/* The two others, and the cell of a table with a row and a column for each node. */
#define next(i) (((i) + 1) % N)
#define last(i) (((i) + 2) % N)
#define cell(i, j) ((i) * N + (j))

#define AFTER(number) (((number) + 1) % NUMBERS)

/* Messages keep their order on the link from i to j. */
mtype = { REQUEST, REPLY, TOKEN };
chan links[9] = [ROOM] of { mtype, byte };
#define link(i, j) links[cell(i, j)]

/* The processes 0 to 2 are the clients of the nodes, 3 to 8 the links between them. */
#define RECEIVER ((_pid - N) / 2)
#define SENDER ((RECEIVER + 1 + (_pid - N) % 2) % N)

inline enter(i) {
    phase[i] = INSIDE;
    assert(phase[next(i)] != INSIDE && phase[last(i)] != INSIDE)
}

ltl served_1 { [] (phase[0] == WAITING -> <> (phase[0] == INSIDE)) }
ltl served_2 { [] (phase[1] == WAITING -> <> (phase[1] == INSIDE)) }
ltl served_3 { [] (phase[2] == WAITING -> <> (phase[2] == INSIDE)) }
