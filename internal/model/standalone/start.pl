# start SOCKET FLAG...: what has to be so before llama-server runs.
use strict;
use warnings;
open my $status, "<", "/proc/self/status" or die "start: /proc/self/status: $!\n";
my %is = map { /^(\w+):\s*(\S+)/ ? ($1 => $2) : () } <$status>;
$is{Seccomp} eq "2" or die "start: no seccomp filter: the engine has none, or was told to leave it out (docker info)\n";
$is{NoNewPrivs} eq "1" or die "start: no_new_privs isn't set\n";
my ($socket, @flags) = @ARGV;
umask 0007;       # the socket is for this user, and for the relay's group
unlink $socket;   # of a server that was killed: it would not start again
delete $ENV{LLAMA_API_KEY} unless length($ENV{LLAMA_API_KEY} // "");   # an empty one would be a key, too
exec "/app/llama-server", "--host", $socket, @flags or die "start: /app/llama-server: $!\n";
