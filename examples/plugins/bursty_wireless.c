/* A fading wireless channel, which is good or bad for exponentially distributed
 * times (Gilbert 1960, in continuous time). In a bad period, a frame is lost
 * with probability loss, and a delivered frame takes retry longer. The state at
 * a frame's departure applies.
 *
 *     cc -std=c99 -O2 -shared -fPIC -I include -o bursty_wireless.so \
 *         examples/plugins/bursty_wireless.c
 *     P=plugin:file=bursty_wireless.so,good=800ms,bad=50ms,delay=2ms,retry=15ms,loss=30%
 *     longwire exec --loss $P --delay $P -- ping far
 *
 * Both hooks use the same channel: with equal parameters, they share one state.
 * The hook that first reaches a time draws the channel's state for it.
 */
#include <stdlib.h>

#include "longwire_plugin.h"

/* Number of past changes of the channel to keep: lose is called for all packets
 * of an array before delay is called for the first. */
#define CHANGES 256

struct state {
    const struct longwire_host *host;
    int64_t mean[2]; /* durations of good and bad periods */
    int64_t delay;
    int64_t retry;
    double loss;
    /* Ring of the times of changes; even changes begin good periods. The first
     * change is at 0, and the last may be in the future. */
    int64_t changes[CHANGES];
    uint64_t count;
};

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **out)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return host->fail(host, "no memory");
    state->host = host;
    state->loss = 1.0;
    state->count = 1;
    if (host->require(parameters, "good") || host->time(parameters, "good", &state->mean[0]) ||
        host->require(parameters, "bad") || host->time(parameters, "bad", &state->mean[1]) ||
        host->time(parameters, "delay", &state->delay) ||
        host->time(parameters, "retry", &state->retry) ||
        host->probability(parameters, "loss", &state->loss)) {
        free(state);
        return LONGWIRE_ERROR;
    }
    if (state->mean[0] == 0 || state->mean[1] == 0) {
        free(state);
        return host->fail(host, "good, bad: must be longer than 0");
    }
    hints->delay_least_ns = state->delay;
    hints->delay_mean_ns =
        state->delay + longwire_nanoseconds((double)state->retry * (double)state->mean[1] /
                                            (double)(state->mean[0] + state->mean[1]));
    *out = state;
    return LONGWIRE_OK;
}

static int64_t change(const struct state *state, uint64_t number)
{
    return state->changes[number % CHANGES];
}

/* Returns whether the channel is bad at a time; -1 if the time is too old. */
static int is_bad(struct state *state, struct longwire_random *random, int64_t at)
{
    uint64_t number;
    while (change(state, state->count - 1) <= at) {
        /* The period from the last change to the next. */
        int64_t mean = state->mean[(state->count - 1) % 2];
        int64_t lasts = state->host->exponential(random, mean);
        int64_t began = change(state, state->count - 1);
        /* Two changes at the same time would hide one of them. */
        state->changes[state->count % CHANGES] = began + (lasts > 0 ? lasts : 1);
        state->count++;
    }
    for (number = state->count - 1; change(state, number) > at; number--)
        if (number == 0 || state->count - number == CHANGES)
            return -1;
    return number % 2;
}

static int too_long_ago(const struct state *state)
{
    return state->host->fail(state->host, "the channel state at this time is no longer stored");
}

static int lose(void *opaque, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    struct state *state = opaque;
    for (size_t i = 0; i < count; i++) {
        int bad = is_bad(state, random, packets[i].at_ns);
        if (bad < 0)
            return too_long_ago(state);
        fates[i] = LONGWIRE_DELIVER;
        if (bad && state->host->chance(random, state->loss))
            fates[i] = LONGWIRE_LOSE;
    }
    return LONGWIRE_OK;
}

static int delay(void *opaque, struct longwire_random *random,
                 const struct longwire_packet *packets, size_t count, int64_t *delays)
{
    struct state *state = opaque;
    for (size_t i = 0; i < count; i++) {
        int bad = is_bad(state, random, packets[i].at_ns);
        if (bad < 0)
            return too_long_ago(state);
        delays[i] = state->delay + (bad ? state->retry : 0);
    }
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "bursty_wireless",
    .create = create,
    .destroy = free,
    .lose = lose,
    .delay = delay,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void)
{
    return &plugin;
}
