//! Tables and names of a tenant in a heap of hakmem: containers of std, labels, a limit that is error.OutOfMemory, and the
//! end of the tenant in one call.

const std = @import("std");
const Heap = @import("heap.zig").Heap;

const Row = struct { id: u64, balance: i64, name: []const u8 };

fn serve(limit: usize) !void {
    const heap = try Heap.init();
    defer heap.deinit();
    const rows = try heap.label("rows");
    const names = try heap.label("names");
    if (heap.label("")) |_| return error.LabelWithoutName else |_| {}

    var table = std.AutoHashMap(u64, Row).init(rows.allocator());
    for (0..1000) |i| {
        const name = try std.fmt.allocPrint(names.allocator(), "row {d}", .{i});
        try table.put(i, .{ .id = i, .balance = 0, .name = name });
    }
    for (0..500) |i| {
        names.allocator().free(table.get(2 * i).?.name);
        _ = table.remove(2 * i);
    }
    std.debug.print("{s}, {d} blocks of rows, {d} of names\n", .{
        table.get(999).?.name, rows.usage().blocks, names.usage().blocks,
    });

    heap.limit(heap.committed() + limit);
    var taken: usize = 0;
    while (rows.allocator().alloc(u8, 10000)) |_| {
        taken += 10000;
    } else |err| {
        std.debug.print("after at least half of the limit: {}, within it: {}, {s}\n", .{
            taken >= limit / 2, taken <= limit, @errorName(err),
        });
    }
}

pub fn main() !void {
    for (0..2) |_| try serve(1 << 20);
}

test "blocks of any alignment grow, shrink and move with what is in them" {
    const heap = try Heap.init();
    defer heap.deinit();
    const label = try heap.label("test");
    const a = label.allocator();
    inline for (.{ 1, 2, 8, 16, 64, 4096, 1 << 16 }) |alignment| {
        var block = try a.alignedAlloc(u8, .fromByteUnits(alignment), 3);
        @memset(block, 7);
        for ([_]usize{ 24, 500, 1, 70000, 3 << 20, 100, 0 }) |n| {
            const before = @min(block.len, n);
            block = try a.realloc(block, n);
            if (n > 0) try std.testing.expect(@intFromPtr(block.ptr) % alignment == 0);
            for (block[0..before]) |byte| try std.testing.expectEqual(7, byte);
            @memset(block, 7);
        }
        a.free(block);
    }
    try std.testing.expectEqual(0, label.usage().blocks);
}

test "what std asks of an allocator" {
    const heap = try Heap.init();
    defer heap.deinit();
    const label = try heap.label("test");
    try std.heap.testAllocator(label.allocator());
    try std.heap.testAllocatorAligned(label.allocator());
    try std.heap.testAllocatorAlignedShrink(label.allocator());
    try std.heap.testAllocatorLargeAlignment(label.allocator());
    try std.testing.expectEqual(0, label.usage().blocks);
}

test "a limit is an error, and what is freed can be taken again" {
    const heap = try Heap.init();
    defer heap.deinit();
    const label = try heap.label("test");
    const a = label.allocator();
    heap.limit(1 << 20);
    try std.testing.expectError(error.OutOfMemory, a.alloc(u8, 2 << 20));
    var list: std.ArrayList([]u8) = .empty;
    defer list.deinit(std.testing.allocator);
    while (a.alloc(u8, 3000)) |block| try list.append(std.testing.allocator, block) else |_| {}
    const full = list.items.len;
    try std.testing.expect(full > 300);
    for (list.items) |block| a.free(block);
    list.clearRetainingCapacity();
    while (a.alloc(u8, 3000)) |block| try list.append(std.testing.allocator, block) else |_| {}
    try std.testing.expect(list.items.len * 100 >= full * 99);
}
