
-- ARGV token, replica, nonce, lease ms, vouch (1 or 0)
-- Returns {done, ...}, {lost, ...} or {ended, ...}.

local err = check()
if err then
  return err
end
local us = now_us()
local ms = math.floor(us / 1000)
local ttl = tonumber(ARGV[4])
if not holds(ARGV[1], ARGV[2], ARGV[3]) then
  return answer('lost', us)
end
if not session_end(sessions, ARGV[2], ms) then
  return answer(redis.call('ZSCORE', sessions, ARGV[2]) and 'lost' or 'ended', us) -- time ends no session before the lease
end
redis.call('PEXPIREAT', lease, whole(ms + ttl))
vouch_for_counter(ARGV[5])
keep_votes(ttl)
set_session(sessions, info, ARGV[2], ms + ttl, '', ms)
return answer('done', us)
