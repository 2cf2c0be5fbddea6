"""Pages of Nsight Compute as its CSV has them, made up."""

RAW = """\
==PROF== Connected to process 7
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","sm__cycles_elapsed.max",\
"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active",\
"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",\
"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",\
"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",\
"launch__occupancy_limit_registers"
"","","","","","","","","","","","byte","byte","ns","cycle","%","%","%","","","inst","inst","inst","block"
"0","7","python3","host","softmax_tile","1","7","(128, 1, 1)","(65,536, 1, 1)","0","9.0",\
"268,435,456","134,217,728","120,000","210,123","81.5","62.5","0","1,000","4,000","6","2","1","n/a"
"1","7","python3","host","tail","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0",\
"1,024","0","3,000","5,000","1","2","0","0","0","0","0","1","8"
"""
DETAILS = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description",\
"Estimated Speedup Type","Estimated Speedup"
"0","7","python3","host","softmax_tile","1","7","(128, 1, 1)","(65,536, 1, 1)","0","9.0",\
"GPU Speed Of Light Throughput","Duration","ns","120,000","","","","",""
"0","7","python3","host","softmax_tile","1","7","(128, 1, 1)","(65,536, 1, 1)","0","9.0",\
"Warp State Statistics","","","","CPIStall","OPT","On average, each warp of this workload spends 6.0 cycles stalled \
waiting for a scoreboard dependency. See the @section:MemoryWorkloadAnalysis:Memory Workload Analysis@ section and the \
@url:guide:https://docs.nvidia.com/x@.","global","18.5"
"0","7","python3","host","softmax_tile","1","7","(128, 1, 1)","(65,536, 1, 1)","0","9.0",\
"Memory Workload Analysis","","","","SharedMemoryConflicts","OPT","25% of the wavefronts conflict.","local","21"
"0","7","python3","host","softmax_tile","1","7","(128, 1, 1)","(65,536, 1, 1)","0","9.0",\
"Launch Statistics","","","","LaunchConfig","INF","All is well.","",""
"""
