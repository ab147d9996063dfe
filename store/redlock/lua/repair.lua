
-- ARGV token, replica, nonce, lease ms, info, vouch (1 or 0)
-- Returns {done, ...}, {lost, ...} or {outrun, ...}.

local err = check()
if err then
  return err
end
local us = now_us()
local ms = math.floor(us / 1000)
local ttl = tonumber(ARGV[4])
local token, replica, nonce = holder()
local ours = token == ARGV[1] and replica == ARGV[2] and nonce == ARGV[3]
local counter = tonumber(redis.call('HGET', votes, 'counter') or '0')
if counter > tonumber(ARGV[1]) then
  return answer('outrun', us)
end
if token and not ours or is_refused('released', ARGV[3]) then
  return answer('lost', us)
end
if ours then
  redis.call('PEXPIREAT', lease, whole(ms + ttl))
else
  hold(ARGV[1], ARGV[2], ARGV[3], '-', ms + ttl)
end
redis.call('HSET', votes, 'counter', ARGV[1])
vouch_for_counter(ARGV[6])
mark(ttl)
keep_votes(ttl)
set_session(sessions, info, ARGV[2], ms + ttl, ARGV[5], ms)
return answer('done', us)
