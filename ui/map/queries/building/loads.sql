SELECT mid, cpu, memory, users, task, task_cpu, celsius FROM MachineLoad
