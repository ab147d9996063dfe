-- Put before every script of a store on Redis.

local MAX_TOKEN = 9007199254740991 -- 2^53-1, the last integer that a number of Lua holds exactly
local FENCE_MS = 2592000000        -- 30 days: how long the fence outlives the last term
local SESSIONS_MS = 172800000      -- 2 days: twice the longest session

-- now_us is the server's clock in microseconds.
local function now_us()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- whole prints an integer; tostring would lose the last digits of one as large as a clock in microseconds.
local function whole(n)
  return string.format('%.0f', n)
end

-- foreign returns an error when key holds another type than want. Scripts are not rolled back, so they ask for every
-- key before they write.
local function foreign(key, want)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= want then
    return redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. found .. ', not a ' .. want)
  end
  return nil
end

-- was_released tells whether nonce is one of those released lately.
local function was_released(fence, nonce)
  local list = redis.call('HGET', fence, 'released')
  return list and string.find(' ' .. list .. ' ', ' ' .. nonce .. ' ', 1, true)
end

-- session_end returns the end of a session that is alive, else nil.
local function session_end(sessions, replica, ms)
  local score = tonumber(redis.call('ZSCORE', sessions, replica) or '-1')
  if score >= ms then
    return score
  end
  return nil
end

-- set_session starts or refreshes a session and clears away a few that are over. PEXPIRE comes first because a server
-- out of memory does not refuse it, and lets a script that has begun to write finish: those who live go on living.
local function set_session(sessions, info, replica, till, about, ms)
  local there = redis.call('PEXPIRE', sessions, SESSIONS_MS)
  redis.call('ZADD', sessions, whole(till), replica)
  if there == 0 then
    redis.call('PEXPIRE', sessions, SESSIONS_MS)
  end
  if about ~= '' then
    redis.call('HSET', info, replica, about)
  end
  redis.call('PEXPIRE', info, SESSIONS_MS)
  local over = redis.call('ZRANGEBYSCORE', sessions, '-inf', '(' .. whole(ms), 'LIMIT', 0, 10)
  for _, id in ipairs(over) do
    redis.call('ZREM', sessions, id)
    redis.call('HDEL', info, id)
  end
end

-- publish sends a hint. It comes last and its failure is nobody's: a user who may not publish has still done the rest.
local function publish(channel, event)
  redis.pcall('PUBLISH', channel, event or '')
end
