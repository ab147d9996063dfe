// Package crontab reads crontab files. Parse reports everything that is wrong with a file at once, each fault with its
// line, its column and the text in question, and never takes a line for something that it may not have meant.
//
// # Lines
//
// Lines end with LF or CRLF, the last one also without. A byte order mark at the beginning is passed over. Blanks and
// tabs before a line, between its parts and at its end mean nothing.
//
//	# a comment
//	NAME=value
//	#: name=report overlap=queue
//	*/5 9-17 * * MON-FRI  command with arguments
//	@daily command
//	@every 90s command
//
// A job line has five fields, or six with Options.Seconds, or a descriptor, as package schedule defines them, and then
// a command, which reaches to the end of the line and is handed to the shell as it stands. A percent sign is an
// ordinary character: there is no standard input to write after it, and nothing to escape. A "#" in a command is the
// shell's.
//
// # Environment
//
// An assignment holds for the jobs below it; a later one of the same name replaces it from there on. As in cronie,
// there may be blanks around the "=", name and value may be quoted, with ' or ", nothing is escaped inside the quotes,
// nothing is expanded, and without quotes the value reaches to the end of the line, less the blanks there. Unlike
// cronie, the value may be missing: the variable is empty then. A name is made of letters, digits, "_", "." and "-" and
// does not start with a digit. All assignments are environment of the jobs; some mean more:
//
//   - SHELL is the absolute path of the shell that is given the command; /bin/sh if it is not set.
//   - CRON_TZ is the zone in which the schedules below are read, an IANA name; empty means Options.Zone again.
//   - TZ is environment only. A value with blanks is refused: it is a zone in front of a job, which would vanish.
//   - MAILTO and MAILFROM send no mail; the first one of a file makes a notice.
//
// # Options of a job
//
// Comment lines that start with "#:" give options to the job on the line below them; nothing may stand between, but
// several such lines may follow one another. Values have no quotes and no blanks. What a job does not say it takes from
// Options.Policies.
//
//	name=report           the job's name: 1 to 128 letters, digits, ".", "_" and "-", starting with a letter or digit
//	overlap=skip          or queue, replace, allow: a tick that falls due while a run of the job is open
//	catch-up=latest       or none, all: ticks that nobody could start in time
//	catch-up-max=100      most ticks that catch-up=all makes up, 1 to 10000; only with catch-up=all
//	window=24h            how late a tick may still be made up, a positive Go duration
//	on-interrupt=record   or rerun: a run whose process has died
//	timeout=10m           longest time for one attempt, a positive Go duration
//	retry=3               how many attempts of a run there are at most where each fails, 1 to 100
//	retry-delay=10s       before the second attempt, doubled each time, a positive Go duration; only with retry
//	jitter=30s            largest delay of a start, a positive Go duration
//
// catch-up=all does not go with overlap=skip and overlap=replace.
//
// A job without a name is called after its command and a hash of schedule, zone and command: "backup-1f3870be". Blanks
// between the fields do not count. Two jobs that would have one name are an error, so two equal lines need names.
//
// # What is refused rather than guessed
//
//   - Six fields without Options.Seconds, which may be seconds first or a year last, and seven with it. The word after
//     the fields is taken for a field when it is made of what only fields are made of: "*", "?", numbers and weekdays,
//     with "-", "/", "," and the forms 5L and FRI#2. A weekday alone, such as "sat", counts only with another word
//     after it. A command of such a name can be written with its path, or in quotes.
//   - @reboot, because a job of many machines has no boot to follow.
//   - The user column of a system crontab, because jobs run as the user that runs this program. The word after the
//     fields is taken for one when it is the name of an account that hardly is a command (root, nobody, www-data,
//     apache, nginx, postgres, ubuntu, ec2-user) and the next word is no option ("root -b" is a program's).
//   - Five fields with Options.Seconds.
//   - A NUL byte, and more than 1 MiB.
//
// A step that is larger than its field, such as that of "*/90", makes a notice: it means the first value only.
package crontab
