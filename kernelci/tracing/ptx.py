"""The marks of kernelci_trace.cuh as inline PTX, for DSLs that can put some into a kernel.

`begin` declares registers of the whole function, so it stands once, first in the kernel; `mark` and `end` use them.
Registers stand for what a Tracer holds in C++: the track's address (0: none), its number, its room, and the count.
"""

from kernelci.tracing.records import BEGUN, END, ENDED, FREE, HEADER_BYTES, RECORD_BYTES, TRACK_BYTES

_DISPLACED, _MISSED = 20, 24  # in the header
_STATE = 52  # in a track

_BEGIN = f"""
.reg .b64 kernelci_track;
.reg .b32 kernelci_number, kernelci_room, kernelci_count;
mov.b64 kernelci_track, 0;
mov.b32 kernelci_number, 0;
mov.b32 kernelci_room, 0;
mov.b32 kernelci_count, 0;
{{
.reg .pred first, free, displaced;
.reg .b32 lane, tracks, block, warp, warps, x, y, z, n;
.reg .b64 header, at, now;
mov.b64 header, ADDRESS;
mov.b32 tracks, 0;
mov.u32 lane, %laneid;
setp.eq.u32 first, lane, 0;
@first ld.global.u32 kernelci_room, [header+12];
@first ld.global.u32 tracks, [header+8];
mov.u32 x, %ctaid.x;
mov.u32 y, %ctaid.y;
mov.u32 z, %ctaid.z;
mov.u32 n, %nctaid.y;
mad.lo.u32 y, n, z, y;
mov.u32 n, %nctaid.x;
mad.lo.u32 block, n, y, x;
mov.u32 x, %tid.x;
mov.u32 y, %tid.y;
mov.u32 z, %tid.z;
mov.u32 n, %ntid.y;
mad.lo.u32 y, n, z, y;
mov.u32 n, %ntid.x;
mad.lo.u32 x, n, y, x;
shr.u32 warp, x, 5;
mov.u32 y, %ntid.y;
mul.lo.u32 n, n, y;
mov.u32 y, %ntid.z;
mad.lo.u32 n, n, y, 31;
shr.u32 warps, n, 5;
cvt.u64.u32 now, warp;
mad.wide.u32 now, block, warps, now;
cvt.u64.u32 at, tracks;
min.u64 now, now, at;
cvt.u32.u64 kernelci_number, now;
mad.lo.u32 x, kernelci_room, {RECORD_BYTES}, {TRACK_BYTES};
mad.wide.u32 at, kernelci_number, x, {HEADER_BYTES};
add.u64 at, at, header;
setp.lt.and.u32 free, kernelci_number, tracks, first;
mov.b32 y, {BEGUN};
@free atom.global.cas.b32 y, [at+{_STATE}], {FREE}, {BEGUN};
setp.ne.and.u32 displaced, y, {FREE}, first;
mov.b32 z, 0;
again:
@displaced atom.global.add.u32 z, [header+{_DISPLACED}], 1;
@displaced sub.u32 kernelci_number, tracks, z;
@displaced sub.u32 kernelci_number, kernelci_number, 1;
mad.wide.u32 at, kernelci_number, x, {HEADER_BYTES};
add.u64 at, at, header;
setp.lt.and.u32 free, z, tracks, displaced;
@free atom.global.cas.b32 y, [at+{_STATE}], {FREE}, {BEGUN};
setp.ne.and.u32 displaced, y, {FREE}, free;
@displaced bra again;
setp.ne.and.u32 displaced, y, {FREE}, first;
@displaced atom.global.add.u32 z, [header+{_MISSED}], 1;
setp.eq.and.u32 free, y, {FREE}, first;
@free mov.b64 kernelci_track, at;
mov.u64 now, %gridid;
cvt.u32.u64 x, now;
@free st.global.b32 [at+32], x;
mov.u32 x, %smid;
@free st.global.b32 [at+36], x;
@free st.global.b32 [at+40], block;
@free st.global.b32 [at+44], warp;
mov.u64 now, %globaltimer;
@free st.global.b64 [at+16], now;
mov.u64 now, %clock64;
@free st.global.b64 [at], now;
}}"""
_MARK = f"""{{
.reg .pred on, room;
.reg .b32 low, high;
.reg .b64 now, at;
setp.ne.b64 on, kernelci_track, 0;
mov.u64 now, %clock64;
mov.b64 {{low, high}}, now;
setp.lt.and.u32 room, kernelci_count, kernelci_room, on;
mad.wide.u32 at, kernelci_count, {RECORD_BYTES}, kernelci_track;
@room st.global.v4.b32 [at+{TRACK_BYTES}], {{low, high, REGION, kernelci_number}};
add.u32 kernelci_count, kernelci_count, 1;
}}"""
_END = f"""{{
.reg .pred on;
.reg .b64 now;
setp.ne.b64 on, kernelci_track, 0;
mov.u64 now, %clock64;
@on st.global.b64 [kernelci_track+8], now;
mov.u64 now, %globaltimer;
@on st.global.b64 [kernelci_track+24], now;
@on st.global.b32 [kernelci_track+48], kernelci_count;
@on st.global.b32 [kernelci_track+52], {ENDED};
}}"""


def begin(address: int) -> str:
    """The kernel begins: this warp claims a track of the buffer there."""
    return _BEGIN.replace("ADDRESS", f"{address:#x}")


def mark(region: int, is_end: bool) -> str:
    """A region begins or ends."""
    return _MARK.replace("REGION", str(region | (END if is_end else 0)))


def end() -> str:
    """The kernel ends."""
    return _END
