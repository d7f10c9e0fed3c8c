//! A heap of hakmem as a std.mem.Allocator: one for each tenant, with labels, a limit, and an end that takes no step for
//! each block. For one thread at a time.

const std = @import("std");
const c = @cImport(@cInclude("hakmem/hakmem.h"));

pub const Error = error{ OutOfMemory, NoLabel };

pub const Usage = struct { bytes: usize, blocks: usize };

pub const Heap = struct {
    ctx: *c.hak_ctx,

    pub fn init() Error!Heap {
        return .{ .ctx = c.hak_ctx_new(null, null) orelse return error.OutOfMemory };
    }

    /// All blocks end at once.
    pub fn deinit(heap: Heap) void {
        c.hak_ctx_destroy(heap.ctx);
    }

    /// The allocator of one label. It must stay where it is while it is in use.
    pub fn label(heap: Heap, name: [:0]const u8) Error!Labelled {
        const number = c.hak_label_define(heap.ctx, name.ptr);
        return if (number == 0) error.NoLabel else .{ .ctx = heap.ctx, .number = number };
    }

    /// Bounds the committed bytes; 0 = no limit.
    pub fn limit(heap: Heap, bytes: usize) void {
        _ = c.hak_limit(heap.ctx, 0, bytes, null, null);
    }

    /// What the limit counts.
    pub fn committed(heap: Heap) usize {
        var stats = std.mem.zeroes(c.hak_stats);
        stats.size = @sizeOf(c.hak_stats);
        _ = c.hak_ctx_stats(heap.ctx, &stats);
        return stats.committed_bytes;
    }
};

pub const Labelled = struct {
    ctx: *c.hak_ctx,
    number: c.hak_label,

    pub fn allocator(labelled: *const Labelled) std.mem.Allocator {
        return .{ .ptr = @constCast(labelled), .vtable = &vtable };
    }

    pub fn usage(labelled: Labelled) Usage {
        var info: c.hak_label_info = undefined;
        _ = c.hak_label_stats(labelled.ctx, labelled.number, &info);
        return .{ .bytes = info.live_bytes, .blocks = info.live_blocks };
    }

    const vtable = std.mem.Allocator.VTable{ .alloc = alloc, .resize = resize, .remap = remap, .free = free };

    fn of(any: *anyopaque) *const Labelled {
        return @ptrCast(@alignCast(any));
    }

    // The return address is the call site: profiles, guard pages and traces of hakmem show it.

    fn alloc(any: *anyopaque, n: usize, alignment: std.mem.Alignment, site: usize) ?[*]u8 {
        const h = of(any);
        return @ptrCast(c.hak_aligned_alloc_cs(h.ctx, alignment.toByteUnits(), n, h.number, site));
    }

    fn resize(any: *anyopaque, block: []u8, _: std.mem.Alignment, n: usize, _: usize) bool {
        return n <= c.hak_usable_size(of(any).ctx, block.ptr);
    }

    fn remap(any: *anyopaque, block: []u8, alignment: std.mem.Alignment, n: usize, site: usize) ?[*]u8 {
        const h = of(any);
        return @ptrCast(c.hak_aligned_realloc_cs(h.ctx, block.ptr, alignment.toByteUnits(), n, h.number, site));
    }

    fn free(any: *anyopaque, block: []u8, _: std.mem.Alignment, site: usize) void {
        c.hak_free_cs(of(any).ctx, block.ptr, site);
    }
};
