// Package procgroup runs a command as a process group and sees to it that the whole group ends with it.
//
// # What Run promises
//
//   - The command gets a process group of its own, with nothing to read on its standard input.
//   - When Run's context ends, SIGTERM goes to the whole group at once. SIGKILL follows for the whole group when
//     Spec.KillAfter has passed, or as soon as Spec.Alive answers false. Neither needs anything but this process: no
//     network, no store.
//   - When Run returns, the command has been reaped, and no process of its group is left. A cron daemon would leave the
//     background children of a command that has ended; here they would overlap the next run of their job, so they are
//     ended too: SIGTERM, half a second, SIGKILL. Result.Leftover tells of the one exception: a process that even
//     SIGKILL has not ended within two seconds, because the kernel cannot end it or because it belongs to another user.
//     The command itself is waited for however long that takes. A dead process that its parent, process 1 as a rule,
//     has not reaped yet is no process.
//   - Where the kernel makes this process the parent of an orphan of the group (it is process 1 of a container, or a
//     subreaper), the orphan is reaped.
//   - Every byte that the group has written reaches Spec.Output, in lines, also when the last one has no newline. A
//     process that has left the group and still holds the output open delays Run by half a second, no longer; what it
//     writes later fails with a broken pipe.
//   - On Linux the kernel sends SIGKILL to the command when this process dies, however it dies. That signal belongs to
//     the thread that has forked, not to the process, and Go ends threads: so the goroutine that starts a command is
//     locked to its thread, and stays there, waiting for the command, until it has been reaped.
//   - With Spec.Guardian no process of the group survives the death of this process, by SIGKILL or otherwise, on Linux and
//     macOS. The guardian is this program, started once more: it reads which groups there are from a pipe whose other end
//     only this process holds, and kills those that are left when the pipe ends. It has a session of its own, so that no
//     terminal reaches it; it ignores what ends a process politely; on Linux it has a name of its own, so that one does
//     not kill it by the name of this program; it holds no files, no environment and no directory; and it goes when this
//     process does. One serves all commands. A command may have started others before this process
//     could say which group it is: those are recognised, on Linux, by the variable Mark of their environment.
//   - On Linux 6.9 and later signals go through a descriptor of the process, so that a number which the kernel has
//     given to another process in the meantime is never hit, not even by a process that was frozen for days. On older
//     kernels and on macOS the number is used, right after a look whether the group is there.
//
// # What it does not promise
//
//   - A process that leaves the group (setsid, a shell's job control, a daemon that detaches itself) is out of reach.
//   - While this process is frozen (SIGSTOP, a suspended container) its children go on: nobody is there to end them.
//   - Without a guardian, when this process dies by SIGKILL, Linux ends the command but not the command's children, macOS
//     neither; a command that is set-user-ID, or has file capabilities, is not ended by the kernel either. With one, on
//     macOS, there remains the instant between the fork and the word to the guardian.
//   - Whoever kills the guardian, too, before another one could be started, leaves what the command has started.
//   - Orphans that have left their group are reaped by ReapOrphans alone.
package procgroup
