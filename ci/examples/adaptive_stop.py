"""The adaptive stop of the flow loop as a user would write it in torch, and histories of counts that end samples."""

import torch


def stopped(completed, created, active, convergence=True, threshold=0.95, min_steps=5, patience=3):
    """When each sample ends, by masks, one step after the other: steps, reason, best, stall and flow-steps."""
    steps, reason, best, stall = (torch.zeros_like(active[0]) for _ in range(4))
    flow_steps = torch.zeros_like(active[0], dtype=torch.int64)
    for step, (done, all_flows, left) in enumerate(zip(completed, created, active)):
        going = reason == 0
        steps = torch.where(going, step, steps)
        reason = torch.where(going & (left == 0), 1, reason)
        asked = going & (left > 0)
        if step == len(completed) - 1:
            reason = torch.where(asked, 2, reason)
        elif convergence and step >= min_steps:
            enough = asked & (done.double() / all_flows.double() >= threshold)
            more = asked & ~enough & (done > best)
            stalled = asked & ~enough & ~more & (best > 0)
            best, stall = torch.where(more, done, best), torch.where(more, 0, stall + stalled)
            reason = torch.where(enough, 3, torch.where(stalled & (stall >= patience), 4, reason))
        flow_steps = flow_steps + torch.where(reason == 0, left, 0)
    return steps, reason, best, stall, flow_steps


def stop_data(decisions, samples, device="cpu"):
    """Flows that complete at a rate of their sample's own, some never; every fifth sample's die."""
    sample = torch.arange(samples, device=device)
    step = torch.arange(decisions, device=device)[:, None]
    created = (20 + 20 * (sample % 4)).expand(decisions, samples)
    completed = torch.minimum(created * step * (sample % 7) // 40, created * (sample % 3 + 8) // 10)
    died = torch.where(sample % 5 == 4, torch.minimum(created - completed, created * step // 12), 0)
    return [counts.to(torch.int32).contiguous() for counts in (completed, created, created - completed - died)]
