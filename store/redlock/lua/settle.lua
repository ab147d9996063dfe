
-- ARGV replica, nonce, attempt, token
-- Returns {ok, ...} or {refused, ...}.

local err = check()
if err then
  return err
end
local us = now_us()
local token, replica, nonce, attempt = holder()
local counter = tonumber(redis.call('HGET', votes, 'counter') or '0')
local wanted = tonumber(ARGV[4])
if not token or replica ~= ARGV[1] or nonce ~= ARGV[2] or attempt ~= ARGV[3] then
  return answer('refused', us)
end
if counter > wanted or counter == wanted and token ~= ARGV[4] then
  return answer('refused', us)
end
local ms = math.floor(us / 1000)
local till = ms + redis.call('PTTL', lease)
hold(ARGV[4], replica, nonce, attempt, till)
if session_end(sessions, replica, ms) then
  set_session(sessions, info, replica, till, '', ms) -- to the instant at which the lease ends, also earlier
end
redis.call('HSET', votes, 'counter', ARGV[4])
redis.call('PEXPIRE', votes, FENCE_MS + redis.call('PTTL', lease))
return answer('ok', us)
